"""Reads the files of `snapmla report lm-eval` with the code of lm-evaluation-harness.

    lm_eval_reads.py DIR [--zeno FILE]

DIR is what --out named. The Python that runs this script needs the package lm-eval (tried with
0.4.13) and pandas. --zeno is scripts/zeno_visualize.py of lm-evaluation-harness. Its main function
runs with a client that keeps what would be uploaded. The exit code is 1 if something cannot be read.
"""
import argparse
import importlib.util
import json
import os
import sys
import types
from pathlib import Path

from lm_eval import result_schema, utils

faults = []


def check(holds, what):
    if not holds:
        faults.append(what)


def check_keys(value, schema, optional, where):
    """The keys of a typed dictionary of lm-eval: none is unknown, and none but the optional ones is absent."""
    known = set(schema.__annotations__)
    check(set(value) <= known, f"{where}: unknown keys {sorted(set(value) - known)}")
    check(known - set(optional) <= set(value), f"{where}: no {sorted(known - set(optional) - set(value))}")


def check_results(results, where):
    absent = (
        "groups samples pretty_env_info transformers_version lm_eval_version upper_git_hash tokenizer_pad_token "
        "tokenizer_eos_token tokenizer_bos_token eot_token_id max_length system_instruction system_instruction_sha "
        "fewshot_as_multiturn chat_template chat_template_sha task_hashes"
    ).split()
    check_keys(results, result_schema.EvalResults, absent, where)
    model = ["model_num_parameters", "model_dtype", "model_revision", "model_sha", "numpy_seed", "torch_seed"]
    check_keys(results["config"], result_schema._EvalConfig, model, f"{where}: config")
    check(isinstance(results["config"]["model_args"], str), f"{where}: model_args")
    check(isinstance(results["date"], float), f"{where}: date")
    tasks = set(results["results"])
    for key in ("configs", "versions", "higher_is_better", "n-samples", "group_subtasks"):
        check(set(results[key]) == tasks, f"{where}: tasks of {key}")
    table = utils.make_table(results)
    for task in tasks:
        check(f"|{task}" in table, f"{where}: {task} is not in the table\n{table}")
        config = results["configs"][task]
        check(config["output_type"] == "generate_until" and config["metric_list"], f"{where}: configs of {task}")
    return tasks


def check_samples(path, task, results):
    rows = [json.loads(line) for line in open(path, encoding="utf-8")]
    metrics = [m["metric"] for m in results["configs"][task]["metric_list"]]
    for row in rows:
        known = set(result_schema.SampleResult.__annotations__)
        check(known <= set(row), f"{path}: no {sorted(known - set(row))}")
        check(set(row) - known == set(metrics) == set(row["metrics"]), f"{path}: metrics")
        check(row["arguments"]["gen_args_0"]["arg_0"], f"{path}: doc {row['doc_id']} has no prompt")
        check(isinstance(row["target"], str) and row["filtered_resps"], f"{path}: target or answer")
    mean = sum(row["acc"] for row in rows) / len(rows)
    check(abs(mean - results["results"][task]["acc,none"]) < 1e-9, f"{path}: the mean is {mean}")
    return len(rows)


def check_arm(folder):
    files = [path.as_posix() for path in folder.iterdir()]
    path = utils.get_latest_filename(utils.get_results_filenames(files))
    results = json.load(open(path, encoding="utf-8"))
    tasks = check_results(results, path)
    samples = utils.get_sample_results_filenames(files)
    check({utils.get_file_task_name(Path(s).name) for s in samples} <= tasks, f"{folder}: names of {samples}")
    for s in samples:
        check(utils.get_file_datetime(Path(s).name) + ".json" == utils.get_file_datetime(path), f"dates of {s}, {path}")
    n = sum(check_samples(s, utils.get_file_task_name(Path(s).name), results) for s in samples)
    print(f"{path}: {len(tasks)} tasks, {n} problems")


def check_zeno(script, folder):
    uploads = []

    class Project:
        def upload_dataset(self, frame, **names):
            uploads.append((frame, names))

        upload_system = upload_dataset

    class Client:
        def __init__(self, key):
            pass

        def create_project(self, metrics, **names):
            check([m["columns"] for m in metrics] == [["acc"]], f"zeno: metrics {metrics}")
            return Project()

    sys.modules["zeno_client"] = types.SimpleNamespace(ZenoClient=Client, ZenoMetric=lambda **keys: keys)
    os.environ["ZENO_API_KEY"] = "none"
    spec = importlib.util.spec_from_file_location("zeno_visualize", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.argv = [script, "--data_path", str(folder), "--project_name", "test"]
    module.main()
    check(len(uploads) >= 2, f"zeno: {len(uploads)} uploads")
    for frame, names in uploads:
        check(len(frame) and set(names.values()) - {names.get("name")} <= set(frame), f"zeno: columns {list(frame)}")
        check("data" not in frame or all(frame["data"]), "zeno: no prompt")
        check("output" not in frame or all(frame["output"]), "zeno: no answer")
    print(f"{script}: {len(uploads)} uploads")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=Path)
    a.add_argument("--zeno")
    o = a.parse_args()
    arms = [f for f in sorted(o.folder.iterdir()) if f.is_dir()]
    check(arms, f"{o.folder}: no folder of an arm")
    for arm in arms:
        check_arm(arm)
    if o.zeno:
        check_zeno(o.zeno, o.folder)
    print("\n".join(faults) or "all of it can be read")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
