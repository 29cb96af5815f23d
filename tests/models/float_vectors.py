"""Runs the model in the program with activations in floats, the oracle for our encoder.

Reads a JSON list of lists of token ids from standard input and writes a JSON list of vectors: the mean of the hidden
states of each, normalized. Needs `onnx` and `onnxruntime` (PyPI).

    float_vectors.py FOLDER_OF_THE_MODEL
"""

import json
import pathlib
import sys

import numpy
import onnx
import onnxruntime


def with_float_activations(graph):
    """Replaces the products of quantized activations by products of floats with the same weights."""
    quantized, casts, nodes, dequantized = {}, {}, [], set()
    for node in graph.node:
        if node.op_type == "DynamicQuantizeLinear":
            quantized[node.output[0]] = node.input[0]
        elif node.op_type == "MatMulInteger":
            activations, weights, _, zero = node.input
            scale = weights.removesuffix("_quantized") + "_scale"
            floats = weights + "_floats"
            if floats not in dequantized:
                dequantized.add(floats)
                nodes.append(
                    onnx.helper.make_node("DequantizeLinear", [weights, scale, zero], [floats], axis=1)
                )
            casts[node.output[0]] = (quantized[activations], floats)
        elif node.op_type == "Cast" and node.input[0] in casts:
            casts[node.output[0]] = casts[node.input[0]]
        elif node.op_type == "Mul" and any(name in casts for name in node.input):
            product = next(name for name in node.input if name in casts)
            nodes.append(onnx.helper.make_node("MatMul", list(casts[product]), list(node.output)))
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(without_unused(nodes, {output.name for output in graph.output}))


def without_unused(nodes, wanted):
    """Returns the nodes whose outputs are used."""
    used = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            used.append(node)
            wanted.update(node.input)
    return reversed(used)


def main():
    model = onnx.load(pathlib.Path(sys.argv[1]) / "minilm_int8.onnx")
    with_float_activations(model.graph)
    options = onnxruntime.SessionOptions()
    # A higher level quantizes the activations again.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    vectors = []
    for ids in json.load(sys.stdin):
        ids = numpy.array([ids])
        inputs = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": ids * 0}
        mean = session.run(None, inputs)[0][0].mean(0)
        vectors.append((mean / numpy.linalg.norm(mean)).tolist())
    json.dump(vectors, sys.stdout)


if __name__ == "__main__":
    main()
