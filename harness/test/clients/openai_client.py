"""Sends requests to a server with the package `openai`, and checks the answers.

    python3 openai_client.py URL MODEL [REQUESTS]

REQUESTS chat completions are sent at once (default: 200), half of them streamed. Then each kind of parameter is
tried. Exits with 1 at the first answer that is not right.
"""
import asyncio
import math
import sys

import openai

URL, MODEL = sys.argv[1], sys.argv[2]
REQUESTS = int(sys.argv[3]) if len(sys.argv) > 3 else 200
client = openai.AsyncOpenAI(base_url=URL, api_key="none", max_retries=0, timeout=600)


def question(i):
    return [{"role": "system", "content": "Answer in one line."},
            {"role": "user", "content": f"What is {3 + i % 7} + {2 + i % 5}?"}]


async def whole(i, **more):
    return await client.chat.completions.create(model=MODEL, messages=question(i), max_tokens=12, seed=i, **more)


async def streamed(i, **more):
    """The text and the usage of a streamed answer."""
    text, usage, finish = "", None, None
    events = await client.chat.completions.create(model=MODEL, messages=question(i), max_tokens=12, seed=i,
                                                  stream=True, stream_options={"include_usage": True}, **more)
    async for event in events:
        usage = event.usage or usage
        for choice in event.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    return text, usage, finish


async def many():
    """Sends each question twice at once, with and without streaming. Both answers must be equal."""
    half = REQUESTS // 2
    answers = await asyncio.gather(*[whole(i) for i in range(half)], *[streamed(i) for i in range(half)])
    for a, (text, usage, finish) in zip(answers[:half], answers[half:]):
        assert a.choices[0].message.content == text, (a.choices[0].message.content, text)
        assert a.choices[0].finish_reason == finish
        assert (a.usage.prompt_tokens, a.usage.completion_tokens) == (usage.prompt_tokens, usage.completion_tokens)
        assert 1 <= usage.completion_tokens <= 12 and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    print(f"{REQUESTS} requests at once: streamed answers equal those without streaming")


async def parameters():
    greedy = await whole(1, temperature=0)
    again, usage, finish = await streamed(1, temperature=0)
    assert greedy.choices[0].message.content == again and usage.completion_tokens == greedy.usage.completion_tokens
    print("temperature 0: the same answer twice")

    a = await whole(2, n=3, logprobs=True, top_logprobs=2)
    assert [c.index for c in a.choices] == [0, 1, 2]
    for c in a.choices:
        assert all(t.logprob <= 0 and math.isfinite(t.logprob) and len(t.top_logprobs) == 2 for t in c.logprobs.content)
        assert b"".join(bytes(t.bytes) for t in c.logprobs.content if not t.token.startswith("<")).decode() == \
            c.message.content
    assert sum(len(c.logprobs.content) for c in a.choices) >= a.usage.completion_tokens
    print("n = 3 with log-probabilities")

    text = greedy.choices[0].message.content
    stop = text[len(text) // 2:len(text) // 2 + 2]
    a = await whole(1, temperature=0, stop=[stop])
    assert a.choices[0].message.content == text[:text.index(stop)] and a.choices[0].finish_reason == "stop"
    print("stop")

    a = await client.completions.create(model=MODEL, prompt=["3 + 4 =", "5 + 6 ="], max_tokens=5, temperature=0,
                                        logprobs=1, echo=True)
    assert len(a.choices) == 2 and a.choices[0].text.startswith("3 + 4 =")
    assert a.choices[0].logprobs.token_logprobs[0] is None
    text = ""
    async for event in await client.completions.create(model=MODEL, prompt="3 + 4 =", max_tokens=5, temperature=0,
                                                       stream=True):
        text += event.choices[0].text
    assert "3 + 4 =" + text == a.choices[0].text
    print("completions")

    models = await client.models.list()
    assert MODEL in [m.id for m in models.data]
    for wrong, more in ((openai.BadRequestError, {"temperature": -1}), (openai.BadRequestError, {"stop": ["x"] * 99}),
                        (openai.NotFoundError, {"model": "another"})):
        try:
            await client.chat.completions.create(**{"model": MODEL, "messages": question(0), **more})
            raise AssertionError(f"not refused: {more}")
        except wrong as e:
            assert e.body["message"], e
    print("the list of models; refusals")


async def main():
    await many()
    await parameters()
    print(f"openai {openai.__version__}: all answers are right")


asyncio.run(main())
