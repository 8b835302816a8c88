"""Uses the tokenizer of a server as lm-evaluation-harness does with tokenizer_backend=remote.

    python3 remote_tokenizer.py URL      URL ends with /v1/completions
"""
import sys

from lm_eval.utils import RemoteTokenizer, check_remote_tokenizer_support

TEXT = "What is 17 * 23?\nÄpfel, \U0001f34e and 100 %"

if not check_remote_tokenizer_support(sys.argv[1]):
    sys.exit("the server does not support a remote tokenizer")
tokenizer = RemoteTokenizer(sys.argv[1])
ids = tokenizer.encode(TEXT)
if tokenizer.decode(ids) != TEXT:
    sys.exit("decoding does not give the text back")
if tokenizer.decode([tokenizer.eos_token_id]) != tokenizer.eos_token:
    sys.exit("the end token is not one token")
prompt = tokenizer.apply_chat_template([{"role": "user", "content": TEXT}], bos_token="", eos_token="")
if TEXT not in prompt:
    sys.exit("the chat template does not show the message")
print(f"{len(ids)} tokens, end token {tokenizer.eos_token}, a prompt of {len(tokenizer.encode(prompt))} tokens")
