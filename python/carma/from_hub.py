"""What a script takes from a hub by its name, where it is not on this machine: `from_pretrained`, `load_dataset`,
scores, `torch.hub.load`. Of known names (carma.hub) the published sizes stand in; of others the hub's own error
stays."""

import os
import types

import torch

from carma import hub, pipelines

# Keywords that say where to look: no members of a configuration, and nothing to a model's function.
_WHERE = frozenset([
    "cache_dir", "force_download", "resume_download", "proxies", "token", "use_auth_token", "local_files_only",
    "revision", "trust_remote_code", "subfolder", "_from_pipeline", "_from_auto", "_commit_hash", "code_revision",
    "user_agent", "gguf_file", "source", "trust_repo", "force_reload", "verbose", "skip_validation",
])  # fmt: skip


def _told(keywords):
    return {key: value for key, value in keywords.items() if key not in _WHERE}


def _is_here(name):
    return os.path.exists(str(name))


def _models(put, stack, recorder):
    def known(kind, method, stand_in, is_empty=lambda made, name: False):
        """stand_in(name, keywords) instead of the classmethod's error or empty answer, where that is not None."""
        original = getattr(kind, method).__func__

        def found(cls, name, *args, **kwargs):
            made = error = None
            try:
                made = original(cls, name, *args, **kwargs)
            except (OSError, ValueError) as raised:
                error = raised
            known_as = pipelines.part(name, kwargs.get("subfolder"))
            if error is None and not is_empty(made, known_as):
                return made
            other = None if _is_here(name) else stand_in(known_as, kwargs)
            if other is not None:
                recorder.doubt(f"{name} is not here: its published sizes stand in", 0)
                return other
            if error is not None:
                raise error
            return made

        put(stack, kind, method, classmethod(found))

    def with_keywords(made, keywords):
        return made and (made, _told(keywords))

    def configurations(module):
        kind = getattr(module, "PreTrainedConfig", None) or module.PretrainedConfig  # before and since Transformers 5
        known(kind, "get_config_dict", lambda name, told: with_keywords(hub.config(name), told))

    def images(module):
        known(module.ImageProcessingMixin, "get_image_processor_dict",
              lambda name, told: with_keywords(hub.image_processor(name), told))  # fmt: skip

    def has_no_words(made, name):
        """Transformers 5 makes a tokenizer of its special tokens where there are no files."""
        return hub.tokenizer_size(name) > 4 * len(made)

    def tokenizers(kind):
        return lambda module: known(
            getattr(module, kind), "from_pretrained", lambda name, _: hub.tokenizer(name), has_no_words
        )

    return {
        "transformers.configuration_utils": configurations,
        "transformers.image_processing_base": images,
        "transformers.tokenization_utils_base": tokenizers("PreTrainedTokenizerBase"),
        "transformers.models.auto.tokenization_auto": tokenizers("AutoTokenizer"),
    }


def _data(put, stack, recorder):
    def data_sets(module):
        """A script may have load_dataset already, so what that asks for is changed."""
        if not hasattr(module, "load_dataset_builder"):  # a script's own datasets
            return
        original = module.load_dataset_builder

        def load_dataset_builder(path, name=None, *args, **kwargs):
            try:
                return original(path, name, *args, **kwargs)
            except Exception:
                if _is_here(path) or not hub.knows_data(path, name):
                    raise
                recorder.doubt(f"{path} is not here: rows of the same columns stand in", 100)
                return types.SimpleNamespace(
                    info=types.SimpleNamespace(dataset_size=0),
                    download_and_prepare=lambda *args, **kwargs: None,
                    as_dataset=lambda split=None, **kwargs: hub.data_set(path, name, split),
                    as_streaming_dataset=lambda split=None, **kwargs: hub.data_set(path, name, split, True),
                )

        put(stack, module, "load_dataset_builder", load_dataset_builder)

    def scores(module):
        if not hasattr(module, "EvaluationModule"):
            return
        original = module.load

        def load(path, *args, **kwargs):
            try:
                return original(path, *args, **kwargs)
            except Exception:  # it takes no memory of the GPU
                return types.SimpleNamespace(
                    name=path,
                    compute=lambda *args, **kwargs: {str(path): 0.0},
                    add_batch=lambda *args, **kwargs: None,
                )

        put(stack, module, "load", load)

    return {"datasets.load": data_sets, "evaluate": scores}


def _torch_hub(put, stack, recorder):
    original = torch.hub.load

    def load(repo, model, *args, **kwargs):
        try:
            return original(repo, model, *args, **kwargs)
        except Exception:
            if str(repo).partition(":")[0] != "pytorch/vision":
                raise
            import torchvision

            recorder.doubt(f"{repo} is not here: the installed torchvision's {model} stands in", 0)
            return getattr(torchvision.models, model)(*args, **_told(kwargs))

    put(stack, torch.hub, "load", load)


def changes(stack, put, recorder):
    """{module: change}"""
    _torch_hub(put, stack, recorder)
    return {
        **_models(put, stack, recorder),
        **_data(put, stack, recorder),
        **pipelines.changes(stack, put, recorder),
    }
