#!/usr/bin/env python3
"""Makes the two tiny models under fixtures/models, which the real loading code is tested with.

Needs `pip install onnx numpy`; writes the same bytes each time. They have the ends of real ones: a sentence transformer
(input_ids, attention_mask, token_type_ids -> last_hidden_state) and a cross-encoder (the same -> logits). The first knows
a few words about cats, money, gardens and bridges; the second counts the words of a query that a text has.
"""

import json
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

HERE = Path(__file__).resolve().parents[2] / "fixtures" / "models"
TOPICS = [
    "cat cats kitten asleep sleeps naps warm sunny window windowsill purrs",
    "bank central raised interest rates money loan quarterly",
    "tomatoes tomato water watering garden plants need deep week",
    "bridge river opened crosses road tunnel",
]
OTHER = "a again an and by days do for how in is it its note notes of often on once or over say says the to twice was what when".split()
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def vocabulary():
    words = [word for topic in TOPICS for word in topic.split()] + OTHER
    return {word: at for at, word in enumerate(MARKS + words)}


def tokenizer(vocab):
    def added(at, text):
        return {"id": at, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True}

    single = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
              {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    both = single + [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(at, text) for at, text in enumerate(MARKS)],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing", "single": single, "pair": both,
            "special_tokens": {name: {"id": name, "ids": [vocab[name]], "tokens": [name]}
                               for name in ("[CLS]", "[SEP]")},
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    }


def inputs():
    return [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask", "token_type_ids")]


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def embedder(vocab):
    """Each topic is a direction; a word of none is a small step aside of its own, so that no text is without one."""
    size = 8
    table = np.zeros((len(vocab), size), dtype=np.float32)
    for direction, topic in enumerate(TOPICS):
        for word in topic.split():
            table[vocab[word], direction] = 1.0
    for word, at in vocab.items():
        if not table[at].any():
            table[at, 4 + at % 4] = 0.1
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        # The two other inputs have a part, as in real models, and change nothing.
        helper.make_node("Add", ["attention_mask", "token_type_ids"], ["sum"]),
        helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
        helper.make_node("Cast", ["nothing"], ["nothing_f"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["nothing_f", "last"], ["nothing_3"]),
        helper.make_node("Add", ["words", "nothing_3"], ["last_hidden_state"]),
    ]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", size])
    constants = [constant("table", table), constant("zero", np.int64(0)), constant("last", np.array([2]))]
    return nodes, out, constants, {"hidden_size": size, "max_position_embeddings": 64, "pad_token_id": 0}


def reranker(_):
    """Words of the query (type 0) that the text (type 1) has too, marks and unknown words left out."""
    cast = lambda name: helper.make_node("Cast", [name], [name + "_f"], to=TensorProto.FLOAT)
    nodes = [
        helper.make_node("Greater", ["input_ids", "last_mark"], ["word"]), cast("word"),
        helper.make_node("Equal", ["token_type_ids", "one"], ["text"]), cast("text"),
        helper.make_node("Sub", ["one_f", "text_f"], ["query_f"]),
        cast("attention_mask"),
        helper.make_node("Mul", ["word_f", "attention_mask_f"], ["real"]),
        helper.make_node("Mul", ["real", "query_f"], ["in_query"]),
        helper.make_node("Mul", ["real", "text_f"], ["in_text"]),
        helper.make_node("Unsqueeze", ["input_ids", "second"], ["ids_r"]),
        helper.make_node("Unsqueeze", ["input_ids", "third"], ["ids_c"]),
        helper.make_node("Equal", ["ids_r", "ids_c"], ["same"]), cast("same"),
        helper.make_node("Unsqueeze", ["in_text", "second"], ["text_row"]),
        helper.make_node("Mul", ["same_f", "text_row"], ["meeting"]),
        helper.make_node("ReduceMax", ["meeting"], ["met"], axes=[2], keepdims=1),
        helper.make_node("Unsqueeze", ["in_query", "second"], ["query_row"]),
        helper.make_node("MatMul", ["query_row", "met"], ["count"]),
        helper.make_node("Squeeze", ["count", "third"], ["logits"]),
    ]
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    constants = [constant("last_mark", np.int64(len(MARKS) - 1)), constant("one", np.int64(1)),
                 constant("one_f", np.float32(1)), constant("second", np.array([1])),
                 constant("third", np.array([2]))]
    return nodes, out, constants, {"max_position_embeddings": 128, "pad_token_id": 0}


def main():
    vocab = vocabulary()
    for name, make in (("tiny-embedder", embedder), ("tiny-reranker", reranker)):
        nodes, out, constants, config = make(vocab)
        graph = helper.make_graph(nodes, name, inputs(), [out], initializer=constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="make.py")
        model.ir_version = 8
        checker.check_model(model, full_check=True)
        folder = HERE / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer(vocab), indent=1) + "\n")
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


if __name__ == "__main__":
    main()
