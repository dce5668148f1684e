"""Usage: make.py PART...: writes the summaries of this directory that tests/unit/test_estimate_read.c reads.

What makes which (the public packages print, the models are ours or torchvision's, transformers' with our sizes):
  torchsummary   torchsummary 1.5.1, torch 1.13, torchvision 0.14     torchsummary-*.txt
  torchinfo      torchinfo of the version that is importable          torchinfo-VERSION-*.txt
                 (made with 1.5.2, 1.6.6, 1.7.2, 1.8.0 on torch 1.13)
  torch-summary  torch-summary 1.4.5 (another package than torchsummary; torchinfo's ancestor), torch 1.13
                                                                      torchinfo-ancestor-*.txt
  torchinfo-next from torchinfo-1.8.0-columns.txt: as versions after 1.8.0 print units (not released when this was made)
  keras3         keras 3.15 on torch                                  keras3-*.txt
  keras2         a writer of our own (there was no TensorFlow): the layout of TensorFlow 2.15's tf_keras ("new") and of
                 TensorFlow 2.4's Keras ("old")                       keras2-*.txt
  tree           print() of torch 1.13, and the same annotated by us  tree-*.txt
  tree-others    print() of transformers 5, timm 1 on torch 2         tree-bert.txt, tree-gpt2*.txt, tree-timm.txt

The files are committed; nothing runs this in a build."""

import contextlib
import io
import pathlib
import sys

HERE = pathlib.Path(__file__).parent


def write(name, text):
    (HERE / f"{name}.txt").write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")


def printed(function, *args, **kwargs):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        function(*args, **kwargs)
    return out.getvalue()


def make_torchsummary():
    import models
    import torchvision
    from torchsummary import summary

    def save(name, model, size, **kwargs):
        write(f"torchsummary-{name}", printed(summary, model, size, device="cpu", **kwargs))

    save("convolutions", models.Convolutions(), (3, 64, 64))
    save("batch", models.Convolutions(frozen=True), (3, 64, 64), batch_size=16)
    save("attentive", models.Attentive(), (3, 32, 32))
    save("perceptron", models.perceptron(), (64,))
    save("series", models.Series(), (20, 6))
    save("resnet101", torchvision.models.resnet101(), (3, 64, 64))


def make_torchinfo():
    import importlib.metadata

    import models
    from torchinfo import summary

    version = importlib.metadata.version("torchinfo")
    picture = (4, 3, 64, 64)

    def save(name, model, **kwargs):
        write(f"torchinfo-{version}-{name}", str(summary(model, verbose=0, **kwargs)))

    save("plain", models.Convolutions(), input_size=picture, depth=4)
    save("columns", models.Convolutions(frozen=True), input_size=picture, depth=4,
         col_names=("kernel_size", "mult_adds", "input_size", "num_params", "output_size"),
         row_settings=("depth", "var_names"))
    save("attentive", models.Attentive(), input_size=(2, 3, 32, 32), row_settings=("var_names",))
    if version != "1.8.0":
        return
    save("every-column", models.Convolutions(frozen=True), input_size=picture, depth=4, col_width=18,
         col_names=("input_size", "output_size", "num_params", "params_percent", "kernel_size", "mult_adds",
                    "trainable"), row_settings=("depth", "var_names"))
    save("ascii", models.Convolutions(), input_size=picture, depth=4, row_settings=("ascii_only", "var_names"))
    save("bare", models.perceptron(), input_size=(8, 64), row_settings=())
    save("no-input", models.Convolutions(), depth=4)
    save("attentive-no-input", models.Attentive())
    save("series", models.Series(), input_size=(5, 20, 6), col_names=("input_size", "output_size", "num_params"))
    save("depth", models.Convolutions(), input_size=picture, depth=2)
    save("verbose", models.Attentive(), input_size=(2, 3, 32, 32),
         col_names=("kernel_size", "output_size", "num_params"))
    text = printed(summary, models.Attentive(), input_size=(2, 3, 32, 32), verbose=2,
                   col_names=("kernel_size", "output_size", "num_params"))
    write(f"torchinfo-{version}-verbose", text)
    import torch

    save("words", models.words(), input_data=torch.zeros(3, 12, dtype=torch.long))


def make_torch_summary():
    import models
    import torch
    from torchsummary import summary

    options = {"verbose": 0, "device": torch.device("cpu")}
    write("torchinfo-ancestor-columns", str(summary(
        models.Convolutions(), (3, 224, 224), depth=4,
        col_names=("kernel_size", "output_size", "num_params"), **options)))


def make_torchinfo_next():
    text = (HERE / "torchinfo-1.8.0-columns.txt").read_text(encoding="utf-8")
    for before, after, factor in (("Input size (MB)", "Input size (kB)", 1e3),
                                  ("Estimated Total Size (MB)", "Estimated Total Size (GB)", 1e-3)):
        start = text.index(before)
        end = text.index("\n", start)
        value = float(text[start:end].split(": ")[1]) * factor
        text = text[:start] + f"{after}: {value:.2f}" + text[end:]
    write("torchinfo-next-columns", text.replace("(Units.MEGABYTES)", "(M)"))


def make_keras3():
    import os

    os.environ["KERAS_BACKEND"] = "torch"
    os.environ["COLUMNS"] = "94"
    import keras
    from keras import layers

    def text_of(model, **kwargs):
        lines = []
        model.summary(print_fn=lines.append, **kwargs)
        return "\n".join(lines)

    def block(x, channels, name):
        y = layers.Conv2D(channels, 3, padding="same", use_bias=False, name=f"{name}_conv")(x)
        y = layers.BatchNormalization(name=f"{name}_normalisation")(y)
        y = layers.Activation("relu", name=f"{name}_relu")(y)
        x = layers.Conv2D(channels, 1, name=f"{name}_shortcut_conv")(x)
        return layers.Add(name=f"{name}_sum")([x, y])

    def convolutions(name):
        image = keras.Input((32, 32, 3), name="image")
        x = block(image, 8, name)
        x = layers.DepthwiseConv2D(3, padding="same")(x)
        x = layers.MaxPooling2D()(x)
        y = layers.Concatenate()([x, layers.LayerNormalization()(x)])
        y = layers.GlobalAveragePooling2D()(y)
        y = layers.Dropout(0.2)(y)
        return keras.Model(image, layers.Dense(10, activation="softmax")(y), name="convolutions")

    keras.utils.clear_session()
    model = convolutions("block1")
    write("keras3-functional", text_of(model, line_length=94))
    write("keras3-cropped", text_of(model, line_length=104))  # wider than the terminal: its right end is lost
    model = convolutions("a_block_with_a_long_name")
    write("keras3-narrow", text_of(model, line_length=74, show_trainable=True))
    whole = keras.Sequential([keras.Input((32, 32, 3)), model, layers.Dense(3)], name="whole")
    write("keras3-nested", text_of(whole, expand_nested=True))
    write("keras3-closed", text_of(whole))
    series = keras.Sequential([keras.Input((128, 4), batch_size=6), layers.Conv1D(16, 5), layers.BatchNormalization(),
                               layers.ReLU(), layers.MaxPooling1D(), layers.LSTM(12), layers.Dense(2)])
    series.compile("adam", "mse")
    series.optimizer.build(series.trainable_variables)
    write("keras3-optimizer", text_of(series))
    picture = keras.Input((None, None, 3))
    x = layers.BatchNormalization()(layers.Conv2D(4, 3)(picture))
    write("keras3-any-size", text_of(keras.Model(picture, layers.Dense(2)(layers.GlobalMaxPooling2D()(x)))))
    write("keras3-unbuilt", text_of(keras.Sequential([layers.Dense(4), layers.Dense(2)])))
    token = keras.Input((20,), dtype="int32")
    x = layers.Embedding(50, 16)(token)
    x = layers.MultiHeadAttention(2, 8)(x, x)
    write("keras3-words", text_of(keras.Model(token, layers.Dense(50)(x))))
    # colours: what a terminal gets
    import rich.console

    plain = rich.console.Console
    rich.console.Console = lambda **kwargs: plain(**{**kwargs, "force_terminal": True, "color_system": "256"})
    write("keras3-colours", text_of(series))
    # a terminal without box drawing
    rich.console.Console = lambda **kwargs: plain(**{**kwargs, "file": io.TextIOWrapper(io.BytesIO(), "ascii")})
    write("keras3-ascii", text_of(series))


# Keras 2: rows of (name, type, shape, parameters, connections, trainable, rows within).
def keras2_block():
    return [
        ("image", "InputLayer", "[(None, 32, 32, 3)]", 0, [], "Y", []),
        ("a_block_with_a_long_name_conv", "Conv2D", "(None, 32, 32, 8)", 216, ["image[0][0]"], "Y", []),
        ("a_block_normalisation", "BatchNormalization", "(None, 32, 32, 8)", 32,
         ["a_block_with_a_long_name_conv[0][0]"], "Y", []),
        ("a_block_relu", "Activation", "(None, 32, 32, 8)", 0, ["a_block_normalisation[0][0]"], "Y", []),
        ("shortcut", "Conv2D", "(None, 32, 32, 8)", 32, ["image[0][0]"], "N", []),
        ("add", "Add", "(None, 32, 32, 8)", 0, ["shortcut[0][0]", "a_block_relu[0][0]"], "Y", []),
        ("tf.nn.gelu", "TFOpLambda", "(None, 32, 32, 8)", 0, ["add[0][0]"], "Y", []),
        ("global_average_pooling2d", "GlobalAveragePooling2D", "(None, 8)", 0, ["tf.nn.gelu[0][0]"], "Y", []),
    ]


def keras2_size(count):
    size = count * 4
    for unit in ("Byte", "KB", "MB", "GB"):  # noqa: B007 used behind the loop
        if size < 1024:
            break
        size /= 1024
    return f"{count} ({size:.2f} {unit})"


def keras2_parameters(rows):
    return sum(keras2_parameters(row[6]) if row[6] else row[3] if isinstance(row[3], int) else 0 for row in rows)


def keras2_new(name, rows, frozen, connected, trainable=False):
    """Cells wrapped, rows apart by empty lines, the footer with sizes."""
    width = 98 if connected else 65
    places = [int(width * part) for part in ((0.3, 0.6, 0.7, 1.0) if connected else (0.45, 0.85, 1.0))]
    titles = ["Layer (type)", "Output Shape", "Param #"] + ["Connected to"] * connected
    if trainable:
        width += 11
        places.append(width)
        titles.append("Trainable")
    lines = [f'Model: "{name}"', "_" * width]

    def row(cells, level):
        left = [str(cell) for cell in cells]
        while any(left):
            line = ""
            for column, text in enumerate(left):
                last = column == len(places) - 1
                room = places[column] - (places[column - 1] if column else 0) - (0 if last else 3)
                room -= level if column == 0 else 0
                cut = text[:room]
                ends = [cut.find(mark) + 2 for mark in ("),", "},", "],", "',") if mark in cut]
                cut = cut[:min(ends)] if ends else cut
                left[column] = text[len(cut):]
                line += ("|" * level + " " if column == 0 else "") + cut
                line += " " * (places[column] - len(line) - (level if last else 0))
            lines.append(line + "|" * level)

    def layer(item, level, last):
        cells = [f"{item[0]} ({item[1]})", item[2], item[3]] + [item[4]] * connected + [item[5]] * trainable
        row(cells, level)
        if item[6]:
            lines.append("|" * (level + 1) + "¯" * (width - 2 * level - 2) + "|" * (level + 1))
            for place, inner in enumerate(item[6]):
                layer(inner, level + 1, place == len(item[6]) - 1)
            lines.append("|" * level + "¯" * (width - 2 * level) + "|" * level)
        if not last:
            lines.append("|" * level + " " * (width - 2 * level) + "|" * level)

    row(titles, 0)
    lines.append("=" * width)
    for item in rows:
        layer(item, 0, False)
    total = keras2_parameters(rows)
    lines += ["=" * width, f"Total params: {keras2_size(total)}", f"Trainable params: {keras2_size(total - frozen)}",
              f"Non-trainable params: {keras2_size(frozen)}", "_" * width]
    return "\n".join(lines)


def keras2_old(name, rows, frozen, connected):
    """Cells cut, rows apart by rules, further connections in rows of their own, the footer with commas."""
    width = 98 if connected else 65
    places = [int(width * part) for part in ((0.33, 0.55, 0.67, 1.0) if connected else (0.45, 0.85, 1.0))]
    lines = [f'Model: "{name}"', "_" * width]

    def row(cells):
        line = ""
        for column, text in enumerate(cells):
            line = (line[:-1] + " " if column else "") + str(text)
            line = line[:places[column]].ljust(places[column])
        lines.append(line)

    row(["Layer (type)", "Output Shape", "Param #"] + ["Connected to"] * connected)
    lines.append("=" * width)
    for place, item in enumerate(rows):
        row([f"{item[0]} ({item[1]})", item[2], item[3]] + [item[4][0] if item[4] else ""] * connected)
        for more in item[4][1:] if connected else []:
            row(["", "", "", more])
        lines.append(("=" if place == len(rows) - 1 else "_") * width)
    total = keras2_parameters(rows)
    lines += [f"Total params: {total:,}", f"Trainable params: {total - frozen:,}", f"Non-trainable params: {frozen:,}",
              "_" * width]
    return "\n".join(lines)


def make_keras2():
    rows = keras2_block()
    tail = [("dense", "Dense", "(None, 1000)", 9000, ["global_average_pooling2d[0][0]"], "Y", [])]
    sequence = [
        ("conv1d", "Conv1D", "(None, 124, 16)", 336, [], "Y", []),
        ("max_pooling1d", "MaxPooling1D", "(None, 62, 16)", 0, [], "Y", []),
        ("bidirectional", "Bidirectional", "(None, 24)", 2784, [], "Y", []),
        ("dense_1", "Dense", "(None, 2)", 50, [], "Y", []),
    ]
    write("keras2-functional", keras2_new("model", rows + tail, 48, True))
    write("keras2-trainable", keras2_new("model", rows + tail, 48, True, True))
    write("keras2-sequential", keras2_new("sequential", sequence, 0, False))
    inner = ("features", "Functional", "(None, 8)", keras2_parameters(rows), ["picture[0][0]"], "Y", rows)
    picture = ("picture", "InputLayer", "[(None, 32, 32, 3)]", 0, [], "Y", [])
    head = ("dense", "Dense", "(None, 10)", 90, ["features[0][0]"], "Y", [])
    write("keras2-nested", keras2_new("whole", [picture, inner, head], 48, True))
    write("keras2-old-functional", keras2_old("model", rows + tail, 48, True))
    write("keras2-old-sequential", keras2_old("sequential_1", sequence, 0, False))
    odd = [("dense_2", "Dense", "multiple", 12, [], "Y", []), ("dense_3", "Dense", "?", "0 (unused)", [], "Y", []),
           ("my_layer", "MyLayer", "[(None, 4), (None, 7)]", 5, [], "Y", [])]
    write("keras2-odd", keras2_new("subclassed", odd, 0, False))


def annotated(module):
    """(repr with ', N params' after each module's end, N)"""
    own = sum(p.numel() for p in module._parameters.values() if p is not None)
    lines, total = [], own
    for name, child in module._modules.items():
        text, count = annotated(child)
        total += count
        lines.append(f"({name}): {text}")
    extra = module.extra_repr()
    body = extra if not lines else "".join("\n" + line for line in ([extra] if extra else []) + lines)
    body = body.replace("\n", "\n  ") + ("\n" if lines else "")
    return f"{module._get_name()}({body}), {total:,} params", total


def make_tree():
    import models
    import torch
    from torch import nn

    write("tree-convolutions", str(models.Convolutions()))
    write("tree-perceptron", str(nn.Sequential(*[layer for layer in models.perceptron()
                                                 if not isinstance(layer, models.Swish2)])))
    write("tree-annotated", annotated(models.Convolutions())[0])
    write("tree-annotated-attentive", annotated(models.Attentive())[0])
    odds = nn.Sequential(
        nn.LSTM(8, 16, num_layers=2, bidirectional=True), nn.GRU(32, 8, bias=False), nn.ConvTranspose2d(4, 6, (3, 1)),
        nn.GroupNorm(2, 6), nn.InstanceNorm2d(6), nn.PReLU(6), nn.Conv3d(2, 4, 3, groups=2), nn.Bilinear(3, 4, 5),
        nn.EmbeddingBag(30, 7), nn.ParameterList([nn.Parameter(torch.zeros(3, 5))]), nn.MultiheadAttention(12, 3),
        models.Swish2(), nn.Sequential())
    write("tree-odds", str(odds))


def make_tree_others():
    import timm
    import torch
    import transformers

    sizes = dict(vocab_size=100, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
                 max_position_embeddings=32)
    write("tree-bert", str(transformers.BertModel(transformers.BertConfig(**sizes))))
    config = transformers.GPT2Config(vocab_size=100, n_embd=24, n_layer=3, n_head=2, n_positions=32)
    write("tree-gpt2", str(transformers.GPT2LMHeadModel(config)))
    write("tree-timm", str(torch.nn.Sequential(
        timm.layers.BatchNormAct2d(8), timm.layers.SelectAdaptivePool2d(flatten=True), timm.layers.DropPath(0.1),
        timm.layers.LayerNorm2d(8), timm.layers.Conv2dSame(8, 4, 3))))
    write("tree-gpt2-annotated", annotated(transformers.GPT2Model(config))[0])


if __name__ == "__main__":
    for part in sys.argv[1:]:
        globals()["make_" + part.replace("-", "_")]()
