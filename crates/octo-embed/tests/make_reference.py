"""Writes reference.json anew from its texts: their tokens, and embeddings calculated in float32 and rounded to int8.

    pip install numpy safetensors tokenizers
    python make_reference.py FOLDER_OF_THE_MODEL
"""

import base64
import json
import math
import pathlib
import sys

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

REFERENCE = pathlib.Path(__file__).parent / "reference.json"
MODEL = pathlib.Path(sys.argv[1])
MAX_TOKENS = 256
HEADS = 12

weights = load_file(MODEL / "model.safetensors")
tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
tokenizer.no_padding()
tokenizer.enable_truncation(MAX_TOKENS)
# Names of special tokens in a text are plain text.
tokenizer.encode_special_tokens = True
erf = np.vectorize(math.erf)


def linear(name, x):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
    return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]


def layer(name, x):
    def heads(part):
        return linear(f"{name}.attention.self.{part}", x).reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    query, key, value = heads("query"), heads("key"), heads("value")
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    attended = (shares @ value).transpose(1, 0, 2).reshape(x.shape)
    x = norm(f"{name}.attention.output", x + linear(f"{name}.attention.output.dense", attended))
    inner = linear(f"{name}.intermediate.dense", x)
    inner = 0.5 * inner * (1 + erf(inner / math.sqrt(2)))
    return norm(f"{name}.output", x + linear(f"{name}.output.dense", inner))


def embed(ids):
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm("embeddings", x + weights["embeddings.token_type_embeddings.weight"][0])
    for number in range(6):
        x = layer(f"encoder.layer.{number}", x)
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def make_record(text):
    ids = tokenizer.encode(text).ids
    embedding = embed(ids)
    rounded = np.round(embedding / np.abs(embedding).max() * 127).astype(np.int8)
    return {"text": text, "ids": ids, "embedding": base64.b64encode(rounded.tobytes()).decode()}


texts = [record["text"] for record in json.loads(REFERENCE.read_text())]
lines = [json.dumps(make_record(text), ensure_ascii=False, separators=(",", ":")) for text in texts]
REFERENCE.write_text("[\n" + ",\n".join(lines) + "\n]\n")
