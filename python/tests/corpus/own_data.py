"""Scripts with loaders of their own, over files that are not here: what they say is the reason that people are told."""

import argparse
import pathlib

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--dataroot")
parser.add_argument("--csv")
parser.add_argument("--hub")
parser.add_argument("--resume")
args = parser.parse_args()
if args.dataroot:
    folder = pathlib.Path(args.dataroot, "trainA")
    assert folder.is_dir(), f"{folder} is not a valid directory"
if args.csv:
    import pandas

    table = torch.tensor(pandas.read_csv(args.csv).values)
if args.hub:
    torch.hub.load(args.hub, "yolov5s", pretrained=True)
if args.resume:
    torch.load(args.resume)
files = sorted(pathlib.Path("data/imgs").glob("*.jpg"))
if not files:
    raise RuntimeError("No input file found in data/imgs, make sure you put your images there")
