"""Data and weights that are not on this machine: a capture needs their shapes alone. Datasets of torchvision stand in
with as many samples as they have, of the same form; models and data of the Hugging Face hub by their names
(carma.from_hub). Weights that have to be downloaded are left as they were initialised."""

import os
import types

import torch

from carma import downloads, from_hub, graphs, pictures

FOLDER = (1000, (375, 500))  # images of a folder that is not there: how many, height and width
FOLDER_CLASSES = {"imagenet": 1000}


class Absent(dict):
    """The state of a model that would have to be downloaded."""


def _zeros(count, shape, numpy):
    """Takes no memory."""
    if numpy:
        import numpy as np

        return np.broadcast_to(np.zeros((1, *shape), dtype=np.uint8), (count, *shape))
    return torch.zeros((1, *shape), dtype=torch.uint8).expand(count, *shape)


def _set(original, recorder, count, shape, classes, numpy):
    def made(self, *args, **kwargs):
        kwargs.pop("download", None)
        try:
            original(self, *args, download=False, **kwargs)
            return
        except (RuntimeError, OSError):
            pass
        from torchvision.datasets import VisionDataset

        root = args[0] if args else kwargs.get("root", "")
        VisionDataset.__init__(self, root, None, kwargs.get("transform"), kwargs.get("target_transform"))
        train = kwargs.get("train", args[1] if len(args) > 1 else kwargs.get("split", "train") == "train")
        self.train = train
        length = count[0] if train else count[1]
        labels = [index % classes for index in range(length)]
        self.data, self.targets = _zeros(length, shape, numpy), labels if numpy else torch.tensor(labels)
        self.labels = self.targets
        self.classes = getattr(type(self), "classes", [str(index) for index in range(classes)])
        recorder.doubt(f"{type(self).__name__} is not here: a data set of the same form stands in", 0)

    return made


def _folder(original, recorder):
    def made(self, root, *args, **kwargs):
        if os.path.isdir(root):
            original(self, root, *args, **kwargs)
            return
        from PIL import Image
        from torchvision.datasets import VisionDataset

        transform = args[0] if args else kwargs.get("transform")
        VisionDataset.__init__(self, root, None, transform, kwargs.get("target_transform"))
        known = [count for name, count in FOLDER_CLASSES.items() if name in str(root).lower()]
        self.classes = [str(index) for index in range(known[0] if known else 10)]
        self.class_to_idx = {name: index for index, name in enumerate(self.classes)}
        self.samples = self.imgs = [("", index % len(self.classes)) for index in range(FOLDER[0])]
        self.targets = [index for _, index in self.samples]
        self.loader = lambda path: Image.new("RGB", FOLDER[1][::-1])
        recorder.doubt(f"{root} is not here: images of {FOLDER[1][1]} x {FOLDER[1][0]} in {len(self.classes)} classes stand in", 100)

    return made


def _torchvision(stack, put, recorder):
    sets = {
        "MNIST": ((60000, 10000), (28, 28), 10, False), "FashionMNIST": ((60000, 10000), (28, 28), 10, False),
        "KMNIST": ((60000, 10000), (28, 28), 10, False), "CIFAR10": ((50000, 10000), (32, 32, 3), 10, True),
        "CIFAR100": ((50000, 10000), (32, 32, 3), 100, True), "SVHN": ((73257, 26032), (3, 32, 32), 10, True),
        "STL10": ((5000, 8000), (3, 96, 96), 10, True),
    }  # fmt: skip

    def change(module):
        for name, (count, shape, classes, numpy) in sets.items():
            kind = getattr(module, name)
            put(stack, kind, "__init__", _set(kind.__init__, recorder, count, shape, classes, numpy))
        put(stack, module.ImageFolder, "__init__", _folder(module.ImageFolder.__init__, recorder))
        for name, form in IMAGES.items():
            if hasattr(module, name):
                put(stack, module, name, _images(getattr(module, name), recorder, *form))
        for name in pictures.FORMS:
            if hasattr(module, name):
                put(stack, module, name, pictures.stand_in(getattr(module, name), recorder))

    return change


# Of others that torchvision downloads: images for training and for tests, height and width of many, classes.
IMAGES = {
    "Caltech101": (8677, 8677, (300, 245), 101), "Caltech256": (30607, 30607, (325, 371), 257),
    "CelebA": (162770, 19962, (218, 178), 40), "DTD": (1880, 1880, (500, 450), 47), "EuroSAT": (27000, 27000, (64, 64), 10),
    "FGVCAircraft": (3334, 3333, (695, 1024), 100), "Flowers102": (1020, 6149, (500, 667), 102),
    "Food101": (75750, 25250, (512, 512), 101), "GTSRB": (26640, 12630, (53, 53), 43), "ImageNet": (1281167, 50000, (375, 500), 1000),
    "Imagenette": (9469, 3925, (375, 500), 10), "OxfordIIITPet": (3680, 3669, (383, 431), 37),
    "Places365": (1803460, 36500, (256, 256), 365), "StanfordCars": (8144, 8041, (483, 700), 196),
    "SUN397": (108754, 108754, (682, 913), 397),
}  # fmt: skip


def _images(kind, recorder, trained, tested, size, classes):
    """A set of that kind which makes its images."""

    class Images(kind):
        def __init__(self, root="", *args, **kwargs):
            kwargs.pop("download", None)
            try:
                kind.__init__(self, root, *args, download=False, **kwargs)
                self.count = None
                return
            except (RuntimeError, OSError, TypeError):
                pass
            from PIL import Image
            from torchvision.datasets import VisionDataset

            VisionDataset.__init__(self, root, None, kwargs.get("transform"), kwargs.get("target_transform"))
            self.count = trained if kwargs.get("split", "train") in ("train", "trainval") and kwargs.get("train", True) else tested
            self.classes, self.image = [str(index) for index in range(classes)], Image.new("RGB", size[::-1])
            self.class_to_idx = {name: index for index, name in enumerate(self.classes)}
            recorder.doubt(f"{kind.__name__} is not here: images of {size[1]} x {size[0]} in {classes} classes stand in", 50)

        def __len__(self):
            return kind.__len__(self) if self.count is None else self.count

        def __getitem__(self, index):
            if self.count is None:
                return kind.__getitem__(self, index)
            image, label = self.image.copy(), index % classes
            if self.transforms is not None:
                image, label = self.transforms(image, label)
            return image, label

    Images.__name__ = Images.__qualname__ = kind.__name__
    return Images


TOKENS = 1 << 20  # of a file that is not there


def _numpy(stack, put, recorder):
    """Files of tokens that a script of its own makes first: train.bin, val.npy."""

    def is_absent(path):
        return isinstance(path, (str, os.PathLike)) and str(path).endswith((".bin", ".npy")) and not os.path.exists(path)

    def doubt(path):
        recorder.doubt(f"{os.path.basename(path)} is not here: zeros stand in", 50)

    def change(module):
        kind, load, fromfile = module.memmap, module.load, module.fromfile

        class memmap(kind):
            def __new__(cls, filename, dtype=module.uint8, mode="r+", offset=0, shape=None, order="C"):
                if mode not in ("r", "c") or not is_absent(filename):
                    return kind.__new__(kind, filename, dtype, mode, offset, shape, order)
                doubt(filename)
                return module.zeros(TOKENS if shape is None else shape, dtype)

        def absent(original):
            def made(file, *args, **kwargs):
                if not is_absent(file):
                    return original(file, *args, **kwargs)
                doubt(file)
                return module.zeros(TOKENS, kwargs.get("dtype") or (args[0] if original is fromfile and args else module.uint16))

            return made

        put(stack, module, "memmap", memmap)
        put(stack, module, "load", absent(load))
        put(stack, module, "fromfile", absent(fromfile))

    return change


def _timm(stack, put, recorder):
    def change(module):
        original = module.load_pretrained

        def load_pretrained(model, *args, **kwargs):
            try:
                original(model, *args, **kwargs)
            except Exception:
                recorder.doubt("pretrained weights are not here: they are left out", 0)

        put(stack, module, "load_pretrained", load_pretrained)

    return change


def _transformers(stack, put, recorder):
    """A model of which only the configuration is here is given zeros, by the way that its weights would take."""

    def change(module):
        kind = module.PreTrainedModel
        original = kind.from_pretrained.__func__

        def from_pretrained(cls, name=None, *args, config=None, **kwargs):
            try:
                return original(cls, name, *args, config=config, **kwargs)
            except OSError:
                from transformers import AutoConfig

                inside = {"subfolder": kwargs["subfolder"]} if kwargs.get("subfolder") else {}
                config = config or (cls.config_class or AutoConfig).from_pretrained(name, **inside)
            with torch.device("meta"):
                model = cls(config)
            dtype = kwargs.get("dtype", kwargs.get("torch_dtype")) or config.dtype
            state = {
                key: torch.zeros((), dtype=dtype if isinstance(dtype, torch.dtype) and value.is_floating_point() else value.dtype)
                .expand(value.shape) if value.numel() > 1 << 21 else torch.zeros(value.shape, dtype=value.dtype)
                for key, value in model.state_dict().items()
            }  # fmt: skip
            recorder.doubt("the weights are not here: zeros stand in", 0)
            model = original(cls, None, *args, config=config, state_dict=state, **kwargs)
            model.name_or_path = model.config._name_or_path = str(name)  # by which libraries ask for its tokenizer
            return model

        put(stack, kind, "from_pretrained", classmethod(from_pretrained))

    return change


def changes(stack, put, recorder):
    """{module: change}"""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
    url = torch.hub.load_state_dict_from_url

    def load_state_dict_from_url(*args, **kwargs):
        try:
            return url(*args, **kwargs)
        except Exception:
            recorder.doubt("pretrained weights are not here: they are left out", 0)
            return Absent()

    load = torch.nn.Module.load_state_dict

    def load_state_dict(module, state, *args, **kwargs):
        if isinstance(state, Absent):
            return types.SimpleNamespace(missing_keys=[], unexpected_keys=[])
        return load(module, state, *args, **kwargs)

    put(stack, torch.hub, "load_state_dict_from_url", load_state_dict_from_url)
    put(stack, torch.nn.Module, "load_state_dict", load_state_dict)
    return {
        "numpy": _numpy(stack, put, recorder),
        "torchvision.datasets": _torchvision(stack, put, recorder),
        "timm.models._builder": _timm(stack, put, recorder),
        "transformers.modeling_utils": _transformers(stack, put, recorder),
        **from_hub.changes(stack, put, recorder),
        **graphs.changes(stack, put, recorder),
        **downloads.changes(stack, put, recorder),
    }
