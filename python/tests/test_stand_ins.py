"""Stand-ins of data, weights and configurations that are not on this machine: carma.missing and what it takes in. Of a
library that Debian lacks a few names stand here: those that are changed."""

import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest
import urllib.request
from types import SimpleNamespace as Module
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

try:
    import numpy
    import requests.sessions
    import torch
    import torchvision
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
from carma import hub, missing, pretend


def absent(*args, **kwargs):
    raise OSError("not here")


def kind(*methods, **more):
    return type("Kind", (), {**dict.fromkeys(methods, classmethod(absent)), **more})


class Model(torch.nn.Linear):
    """Of Transformers: without weights, but with a configuration."""

    config_class = kind(from_pretrained=classmethod(lambda cls, name: Module(dtype=torch.float16)))

    def __init__(self, config):
        super().__init__(2, 3)
        self.config = config

    @classmethod
    def from_pretrained(cls, name, config=None, state_dict=None):
        return cls(config) if state_dict and not any(map(torch.any, state_dict.values())) else absent()


def shown(data, index=0):
    image, target = data[index]
    return len(data), image.size, target if isinstance(target, int) else len(target)


GRAPHS = {name: kind(__init__=absent, collate=lambda self, graphs: (graphs, 0)) for name in ("Planetoid", "TUDataset")}
# The changed module's name, the module; what a script asks of it and gets (an error's kind, where it must stay).
ROWS = (
    ("torchvision.datasets", torchvision.datasets,
     (lambda it: len(it.MNIST("no", download=True)), 60000),
     (lambda it: shown(it.CIFAR10("no", train=False), 13), (10000, (32, 32), 3)),
     (lambda it: shown(it.ImageFolder("no/imagenet"), 999), (1000, (500, 375), 999)),
     (lambda it: shown(it.Flowers102("no", split="test"), 5), (6149, (667, 500), 5)),
     (lambda it: shown(it.CocoDetection("no/val2017", "no.json")), (4952, (640, 480), 7)),
     (lambda it: it.VOCSegmentation("no")[1463][1].getextrema(), (0, 20))),
    ("numpy", numpy, (lambda it: it.memmap("no.bin", it.uint16, "r").shape, (1 << 20,)),
     (lambda it: (it.load("no.npy").dtype, it.fromfile("no.bin", "int32").dtype), ("uint16", "int32")),
     (lambda it: it.load("no.npz"), FileNotFoundError)),
    ("timm.models._builder", Module(load_pretrained=absent), (lambda it: it.load_pretrained(None), None)),
    ("transformers.modeling_utils", Module(PreTrainedModel=Model),  # the name is for its processor
     (lambda it: it.PreTrainedModel.from_pretrained("own").config._name_or_path, "own")),
    ("transformers.configuration_utils", Module(PretrainedConfig=kind("get_config_dict")),
     (lambda it: it.PretrainedConfig.get_config_dict("google-bert/bert-base-cased", token=1)[0]["vocab_size"], 28996),
     (lambda it: it.PretrainedConfig.get_config_dict("some/other"), OSError),
     (lambda it: it.PretrainedConfig.get_config_dict("gpt2"), OSError)),  # a folder here
    ("transformers.image_processing_base", Module(ImageProcessingMixin=kind("get_image_processor_dict")),
     (lambda it: it.ImageProcessingMixin.get_image_processor_dict("google/vit-base-patch16-224", size=9),
      ({"image_processor_type": "ViTImageProcessor"}, {"size": 9}))),
    ("transformers.models.auto.tokenization_auto", Module(AutoTokenizer=kind("from_pretrained")),
     (lambda it: it.AutoTokenizer.from_pretrained("gpt2-xl"), "words of gpt2-xl")),
    ("datasets.load", Module(load_dataset_builder=absent), (lambda it: it.load_dataset_builder("some/other"), OSError),
     (lambda it: it.load_dataset_builder("imdb").as_dataset("test"), "imdb None test")),
    ("evaluate", Module(load=absent, EvaluationModule=1), (lambda it: it.load("f1").compute(), {"f1": 0.0})),
    ("diffusers.configuration_utils", Module(ConfigMixin=kind("load_config")),
     (lambda it: it.ConfigMixin.load_config("stable-diffusion-v1-5", subfolder="unet")["sample_size"], 64)),
    ("torch_geometric.datasets", Module(**GRAPHS), (lambda it: it.Planetoid("no", "Cora").data[0].x.shape, (2708, 1433)),
     (lambda it: len(it.TUDataset("no", "PROTEINS").data), 1113)),
    ("torch.hub", torch.hub, (lambda it: type(it.load("pytorch/vision:v0.10", "resnet18")).__name__, "ResNet"),
     (lambda it: it.load("some/other", "resnet18"), OSError),
     (lambda it: torch.nn.Linear(2, 2).load_state_dict(it.load_state_dict_from_url("x")).missing_keys, [])),
    ("urllib.request", urllib.request, (lambda it: len(it.urlopen("http://a.invalid/x.txt").read()) > 1e6, True),
     (lambda it: it.urlretrieve("http://a.invalid/set.tar"), OSError),
     (lambda it: it.urlretrieve("http://a.invalid/set.tar", shutil.copy(__file__, "set.tar"))[0], "set.tar")),
    ("requests.sessions", requests.sessions, (lambda it: it.Session().get("http://a.invalid/set.tar"), OSError),
     (lambda it: len(it.Session().get("http://a.invalid/x.txt").text) > 1e6, True)),
    ("time", time, (lambda it: it.sleep(4000) < 1, True)),  # before the next try
)  # fmt: skip


class StandIns(unittest.TestCase):
    def test_each(self):
        entered = {**vars(torch), "device": lambda name: contextlib.nullcontext()}  # 1.13's is no context
        others = {"torch_geometric.data": Module(Data=Module), "transformers": Module(AutoConfig=None)}
        self.addCleanup(os.chdir, os.getcwd())
        with (tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ), mock.patch.dict(sys.modules, others),
              mock.patch.multiple(hub, tokenizer="words of {}".format, data_set="{} {} {}".format),
              mock.patch.multiple(torch.hub, load=absent, load_state_dict_from_url=absent),
              mock.patch.object(urllib.request, "urlopen", absent), mock.patch.object(missing, "torch", Module(**entered)),
              mock.patch("requests.adapters.HTTPAdapter.send", absent), mock.patch.object(time, "sleep", float)):  # fmt: skip
            os.chdir(folder)
            os.mkdir("gpt2")
            for name, module, *asked in ROWS:
                for ask, gets in asked:
                    with self.subTest(module=name, gets=gets), contextlib.ExitStack() as stack:
                        changes = missing.changes(stack, pretend.replace, mock.Mock())
                        changes.get(name, lambda module: None)(module)
                        self.assertRaises(gets, ask, module) if isinstance(gets, type) else self.assertEqual(ask(module), gets)


if __name__ == "__main__":
    unittest.main()
