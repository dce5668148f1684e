"""What a user has on his machine by the time that he trains: the data, weights and caches that the commands of
bench/corpus_commands look for, in the forms in which the libraries leave them. All of it is made here and small: as few
samples as two steps need, and weights that are holes in their files. What is not here: the files of CIFAR and STL10, whose
checksums the readers know, and COCO, whose reader is not installed.
Usage: corpus_data.py HOME"""

import csv
import itertools
import json
import os
import pathlib
import pickle
import struct
import sys
import tarfile

import datasets
import diffusers
import numpy as np
import safetensors.torch
import timm
import torch
import torchvision
import transformers
from datasets.arrow_writer import ArrowWriter
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from carma import hub, pipelines  # noqa: E402 # the published sizes: here they become files

DECODERS = ["openai-community/gpt2", "gpt2", "meta-llama/Llama-3.2-1B", "mistralai/Mistral-7B-v0.1", "Qwen/Qwen2-0.5B",
            "Qwen/Qwen2-0.5B-Instruct", "Qwen/Qwen2.5-1.5B"]  # fmt: skip
MODELS = ["google-bert/bert-base-cased", "google-bert/bert-base-uncased", "bert-base-cased", "FacebookAI/roberta-base",
          "FacebookAI/xlm-roberta-base", "google-t5/t5-small", "google/vit-base-patch16-224-in21k", *DECODERS]  # fmt: skip
UNKNOWN = {"some-laboratory/english-uncased-base": "bert-base-uncased", "some-laboratory/decoder": "Qwen2-0.5B"}
PIPELINES = ["runwayml/stable-diffusion-v1-5", "stabilityai/stable-diffusion-2-1-base"]
SETS = ["nyu-mll/glue sst2", "nyu-mll/glue mrpc", "Salesforce/wikitext wikitext-2-raw-v1", "conll2003 conll2003", "squad plain_text",
        "cnn_dailymail 3.0.0", "imdb plain_text", "yahma/alpaca-cleaned default", "trl-lib/Capybara default",
        "trl-lib/ultrafeedback_binarized default", "uoft-cs/cifar10 plain_text", "lambdalabs/naruto-blip-captions default"]  # fmt: skip
VISION = ["ResNet18_Weights.IMAGENET1K_V1", "ResNet50_Weights.IMAGENET1K_V1", "VGG16_Weights.IMAGENET1K_V1",
          "FasterRCNN_ResNet50_FPN_Weights.COCO_V1"]  # fmt: skip
TIMM = ["convnext_atto", "vit_tiny_patch16_224"]


def folder(*parts):
    """The path of one, which is there then."""
    path = pathlib.Path(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


def images(place, size, count, kind="RGB"):
    """As many as asked, in the names 0.jpg, 1.jpg, ..."""
    folder(place)
    first = place / f"0.{'jpg' if kind == 'RGB' else 'png'}"
    Image.effect_noise(size, 40).convert(kind).save(first)
    for index in range(1, count):
        (place / f"{index}{first.suffix}").write_bytes(first.read_bytes())
    return [str(index) for index in range(count)]


def classes(place, count, each, size=(500, 375)):
    for name in range(count):
        images(place / f"class{name}", size, each)


def idx(path, values):
    """MNIST's format."""
    folder(path.parent)
    path.write_bytes(struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes())


def own(work):
    """Files of scripts with readers of their own."""
    data = folder(work / "data")
    np.random.randint(0, 100, 1 << 18).astype(np.uint16).tofile(data / "train.bin")
    (work / "input.txt").write_text("To be, or not to be: that is the question.\n" * 4000)
    images(data / "imgs", (320, 240), 16)
    with tarfile.open(work / "set.tar", "w") as file:
        file.add(data / "imgs", "data/imgs")
    images(folder(work / "datasets/maps/trainA"), (600, 600), 16)
    with open(work / "table.csv", "w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c", "y"], *([0.5, row, 1, row % 2] for row in range(200))])
    with open(work / "train.csv", "w", newline="") as file:
        csv.writer(file).writerows([["sentence", "label"], *(["an example of a sentence", row % 2] for row in range(200))])
    torch.save({"model": torch.nn.Conv2d(3, 16, 3, 2).state_dict()}, work / "checkpoint.pth")
    for name, sizes in (("llama", (512, 4, 8, 4, 1376, 16000)), ("base", (1024, 4, 16, 16, 2816, 32000))):
        names = "hidden_size num_hidden_layers num_attention_heads num_key_value_heads intermediate_size vocab_size"
        made = transformers.LlamaConfig(**dict(zip(names.split(), sizes)), dtype=torch.bfloat16)
        weights(folder(work / name) / "model.safetensors", transformers.LlamaForCausalLM, made)


def vision(home, data):
    """torchvision's data sets in a script's own folder, and weights."""
    for part, count in (("train", 1024), ("t10k", 1000)):
        idx(data / f"MNIST/raw/{part}-images-idx3-ubyte", np.zeros((count, 28, 28), np.uint8))
        idx(data / f"MNIST/raw/{part}-labels-idx1-ubyte", np.arange(count, dtype=np.uint8) % 10)
    pets = data / "oxford-iiit-pet"
    lines = [f"{name} {int(name) % 37 + 1} 1 1\n" for name in images(pets / "images", (431, 383), 37)]
    (folder(pets / "annotations") / "trainval.txt").write_text("".join(lines))
    for part in ("train", "val"):
        classes(data / "hymenoptera_data" / part, 2, 16)
    kept = folder(home, ".cache/torch/hub/checkpoints")
    for name in VISION:
        weight = torchvision.models.get_weight(name)
        bare = {"weights_backbone": None} if "RCNN" in name else {}
        with torch.device("meta"):
            model = torchvision.models.get_model(name.partition("_Weights")[0].lower(), weights=None, **bare)
        torch.save(zeros(model), kept / weight.url.rpartition("/")[2])


def zeros(model):
    return {name: torch.zeros(value.shape, dtype=value.dtype) for name, value in model.state_dict().items()}


def shared(place):
    """The data sets that all of a machine's users have: ImageNet, VOC."""
    classes(place / "imagenet/train", 8, 80)
    voc = place / "VOC/VOCdevkit/VOC2012"
    images(voc / "SegmentationClass", (500, 375), 16, "P")
    names = images(voc / "JPEGImages", (500, 375), 16)
    (folder(voc / "ImageSets/Segmentation") / "train.txt").write_text("\n".join(names))


def graphs(data):
    """PyTorch Geometric's raw files of the sets that the commands name."""
    for name, nodes, features, kinds in (("Cora", 2708, 1433, 7), ("PubMed", 19717, 500, 3)):
        raw, tested, taught = folder(data, name, name, "raw"), 1000, 20 * kinds
        x, y = np.zeros((nodes, features), np.float32), np.eye(kinds, dtype=np.int32)[np.arange(nodes) % kinds]
        near = {node: [(node + step) % nodes for step in (1, 2, -1 % nodes, -2 % nodes)] for node in range(nodes)}
        known = nodes - tested
        parts = {"x": x[:taught], "tx": x[known:], "allx": x[:known], "y": y[:taught], "ty": y[known:], "ally": y[:known], "graph": near}
        for part, value in parts.items():
            (raw / f"ind.{name.lower()}.{part}").write_bytes(pickle.dumps(value))
        (raw / f"ind.{name.lower()}.test.index").write_text("\n".join(map(str, range(known, nodes))))
    raw, graph, size = folder(data, "PROTEINS", "PROTEINS", "raw"), 200, 39
    near = [(g * size + n + 1, g * size + (n + 1) % size + 1) for g in range(graph) for n in range(size)]
    made = {"A": [f"{a}, {b}\n{b}, {a}" for a, b in near], "graph_indicator": [g + 1 for g in range(graph) for _ in range(size)],
            "graph_labels": [g % 2 for g in range(graph)], "node_labels": [n % 3 for _ in range(graph) for n in range(size)]}  # fmt: skip
    for part, lines in made.items():
        (raw / f"PROTEINS_{part}.txt").write_text("\n".join(map(str, lines)))


SHORT = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}


def weights(path, kind, config, from_config=False):
    """A file of safetensors with the model's shapes. Its tensors are a hole: gigabytes take no disk."""
    with torch.device("meta"):
        model = kind.from_config(config) if from_config else kind(config)
    own = {name for name, _ in (*model.named_parameters(), *model.named_buffers())}  # one of the names of a shared tensor
    dtype = getattr(config, "dtype", None) or torch.float32
    head, at = {"__metadata__": {"format": "pt"}}, 0
    for name, value in model.state_dict().items():
        if name in own:
            form = dtype if value.is_floating_point() else value.dtype
            end = at + value.numel() * form.itemsize
            head[name] = {"dtype": SHORT[form], "shape": list(value.shape), "data_offsets": [at, end]}
            at = end
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def snapshot(cache, name):
    """The folder of a model in the hub's cache."""
    kept = folder(cache, "hub", "models--" + name.replace("/", "--"))
    (folder(kept / "refs") / "main").write_text("0" * 40)
    return folder(kept, "snapshots", "0" * 40)


def pairs_of_bytes(place, size, ends):
    """vocab.json and merges.txt of a tokenizer by bytes, whose words are pairs of them."""
    letters = [chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324))]
    stop = "</w>" if len(ends) > 1 else ""
    single = [*letters, *(letter + stop for letter in letters if stop)]
    merged = list(itertools.islice(itertools.product(letters, letters), size - len(single) - len(ends)))
    words = [*single, *(a + b + stop for a, b in merged), *ends]
    (place / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (place / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}{stop}\n" for a, b in merged))


def tokens(place, name):
    hub.tokenizer(name).save_pretrained(place)


def model(cache, name, known):
    place, made = snapshot(cache, name), hub.config(known)
    (place / "config.json").write_text(json.dumps(made))
    config = transformers.AutoConfig.from_pretrained(place)
    kind = getattr(transformers, made.get("architectures", [""])[0], None)
    weights(place / "model.safetensors", kind or transformers.AutoModel, config, kind is None)
    if hub.image_processor(known):
        (place / "preprocessor_config.json").write_text(json.dumps(hub.image_processor(known)))
    elif made["model_type"] == "gpt2":
        pairs_of_bytes(place, made["vocab_size"], ["<|endoftext|>"])
        (place / "tokenizer_config.json").write_text('{"model_max_length": 1024}')
    else:
        tokens(place, known)


def pipeline(cache, name):
    """Stable Diffusion's parts."""
    place, part = snapshot(cache, name), lambda what: pipelines.part(name, what)
    for what, kind in (("unet", diffusers.UNet2DConditionModel), ("vae", diffusers.AutoencoderKL)):
        (folder(place / what) / "config.json").write_text(json.dumps({"_class_name": kind.__name__, **part(what)}))
        weights(place / what / "diffusion_pytorch_model.safetensors", kind, part(what), True)
    (folder(place / "scheduler") / "scheduler_config.json").write_text(json.dumps(part("scheduler")))
    made = hub.config(part("text_encoder"))
    (folder(place / "text_encoder") / "config.json").write_text(json.dumps(made))
    config = transformers.CLIPTextConfig.from_pretrained(place / "text_encoder")
    weights(place / "text_encoder/model.safetensors", transformers.CLIPTextModel, config)
    pairs_of_bytes(folder(place / "tokenizer"), made["vocab_size"], ["<|startoftext|>", "<|endoftext|>"])
    (place / "tokenizer/tokenizer_config.json").write_text('{"model_max_length": 77, "tokenizer_class": "CLIPTokenizer"}')


def data_set(cache, name, config):
    """As load_dataset leaves it: rows in Arrow's form, and what they are."""
    *owner, short = name.split("/")
    short = datasets.naming.camelcase_to_snakecase(short)
    place = folder(cache, "datasets", "___".join([*owner, short]), config, "0.0.0", "0" * 40)
    parts = {}
    for split, rows in hub.data_set(name, config).items():
        with ArrowWriter(path=str(place / f"{short}-{split}.arrow"), features=rows.features) as writer:
            writer.write_table(rows.data.table)
            writer.finalize()
        parts[split] = datasets.SplitInfo(split, num_examples=len(rows), dataset_name=short)
    datasets.DatasetInfo(features=rows.features, splits=datasets.SplitDict(parts), builder_name="parquet", dataset_name=short,
                         config_name=config, version="0.0.0").write_to_directory(place)  # fmt: skip


def repository(home):
    """What torch.hub.load has unpacked."""
    kept = folder(home, ".cache/torch/hub")
    (folder(kept / "ultralytics_yolov5_main") / "hubconf.py").write_text(
        "import torch\n\n\ndef yolov5s(pretrained=False):\n    return torch.nn.Conv2d(3, 16, 3, 2)\n")
    (kept / "trusted_list").write_text("ultralytics_yolov5\n")


def main():
    home = pathlib.Path(sys.argv[1])
    work, cache = folder(home / "work"), folder(home / ".cache/huggingface")
    own(work)
    shared(home / "datasets")
    vision(home, home / "data")
    graphs(home / "data")
    repository(home)
    for name, known in {**{name: name for name in MODELS}, **UNKNOWN}.items():
        model(cache, name, known)
    for name in PIPELINES:
        pipeline(cache, name)
    for name in TIMM:
        place = snapshot(cache, timm.models.get_pretrained_cfg(name).hf_hub_id)
        safetensors.torch.save_file(zeros(timm.create_model(name)), place / "model.safetensors")
    for words in SETS:
        data_set(cache, *words.split())
    for name in ("MNIST", "oxford-iiit-pet", "hymenoptera_data"):
        os.symlink(f"../../data/{name}", work / "data" / name)
    os.symlink("../data", home / "corpus/data")


if __name__ == "__main__":
    main()
