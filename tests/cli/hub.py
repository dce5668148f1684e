"""Usage: hub.py CARMA SOURCE
The hub's models that captures know by name (python/carma/hub.py): each of a type that --hf-config reads has as many
parameters as its name says, or as were published."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# In millions, where the name says none, or another: of the model with its head for words.
PUBLISHED = {
    "bert-base-uncased": 109.5, "bert-large-uncased": 335.2, "distilbert-base-uncased": 67, "roberta-base": 124.7,
    "roberta-large": 355.4, "xlm-roberta-base": 278.3, "gpt2": 124.4, "gpt2-medium": 354.8, "gpt2-large": 774,
    "gpt2-xl": 1557.6, "t5-small": 60.5, "t5-base": 222.9, "t5-large": 737.7, "flan-t5-small": 77,
    "flan-t5-base": 247.6, "mt5-small": 300.2, "vit-base-patch16-224": 86.6, "phi-2": 2779.7,
    "llama-3.2-1b": 1235.8, "gemma-2b": 2506.2,
    "gemma-7b": 8537.7, "gemma-2-2b": 2614.3, "meta-llama-3-8b": 8030.3, "qwen2-7b": 7615.6,
}  # fmt: skip
SIZE = re.compile(r"[-_](\d+(?:\.\d+)?)([bm])(?:-|$)")
EXACT, ROUNDED = 0.01, 0.08  # names round


def parameters(carma, folder, config):
    """In millions; None of a type that is not read."""
    (folder / "config.json").write_text(json.dumps({"num_labels": 1000, **config}))
    run = subprocess.run([carma, "estimate", "--hf-config", folder / "config.json", "--batch-size", "1", "--explain"],
                         check=False, capture_output=True, text=True)  # fmt: skip
    if "is not known; give a capture" in run.stderr:
        return None
    assert run.returncode == 0, f"{config}: {run.stderr}"
    return float(re.search(r" of ([\d.e+]+) million parameters", run.stdout)[1])


def main():
    carma, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    spec = importlib.util.spec_from_file_location("hub", source / "python" / "carma" / "hub.py")
    hub = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hub)
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in dict.fromkeys(map(str, hub.MODELS.values())):
            names = [name for name, model in hub.MODELS.items() if str(model) == row]
            name = next((name for name in names if name in PUBLISHED or SIZE.search(name)), None)
            if name is None:
                continue
            said = PUBLISHED.get(name) or float(SIZE.search(name)[1]) * (1000 if SIZE.search(name)[2] == "b" else 1)
            found = parameters(carma, pathlib.Path(folder), hub.config(f"owner/{name.upper()}"))
            if found is not None:
                error = abs(found / said - 1)
                assert error <= (EXACT if name in PUBLISHED else ROUNDED), (
                    f"{name}: {found} million parameters, not {said}"
                )
                compared += 1
    assert compared >= 50, f"only {compared} models are compared"
    assert hub.config("some-laboratory/english-uncased-base") is None
    assert hub.knows_data("nyu-mll/glue", "sst2") and hub.knows_data("imdb") and not hub.knows_data("nobody/knows")


main()
