"""Pipelines of diffusers by their names on the hub: the configurations of their parts, as published with them (data/NOTICE).
Weights that are not here are memory that nobody has written: a capture takes their shapes."""

import torch

_DOWN, _CROSS_DOWN, _UP, _CROSS_UP = "DownBlock2D", "CrossAttnDownBlock2D", "UpBlock2D", "CrossAttnUpBlock2D"
_FOUR = {"down_block_types": [_CROSS_DOWN] * 3 + [_DOWN], "up_block_types": [_UP] + [_CROSS_UP] * 3,
         "block_out_channels": [320, 640, 1280, 1280]}  # fmt: skip
_SECOND = {**_FOUR, "cross_attention_dim": 1024, "attention_head_dim": [5, 10, 20, 20], "use_linear_projection": True}
_XL = {
    "sample_size": 128, "down_block_types": [_DOWN, _CROSS_DOWN, _CROSS_DOWN], "up_block_types": [_CROSS_UP, _CROSS_UP, _UP],
    "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048, "attention_head_dim": [5, 10, 20],
    "transformer_layers_per_block": [1, 2, 10], "use_linear_projection": True, "addition_embed_type": "text_time",
    "addition_time_embed_dim": 256, "projection_class_embeddings_input_dim": 2816,
}  # fmt: skip
_VAE = {"block_out_channels": [128, 256, 512, 512], "down_block_types": ["DownEncoderBlock2D"] * 4, "layers_per_block": 2,
        "up_block_types": ["UpDecoderBlock2D"] * 4, "sample_size": 512, "scaling_factor": 0.18215}  # fmt: skip
_TIMES = {"num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
# A part's configuration, or the name of its row in carma.hub.
_FIRST = {"unet": {**_FOUR, "sample_size": 64, "cross_attention_dim": 768}, "vae": _VAE, "scheduler": _TIMES,
          "text_encoder": "clip-vit-large-patch14", "tokenizer": "clip-vit-large-patch14"}  # fmt: skip
_KINDS = {
    "first": _FIRST,
    "second base": {**_FIRST, "unet": {**_SECOND, "sample_size": 64}, "text_encoder": "clip-vit-h-14-23",
                    "tokenizer": "clip-vit-h-14-23"},
    "second": {**_FIRST, "unet": {**_SECOND, "sample_size": 96}, "text_encoder": "clip-vit-h-14-23",
               "tokenizer": "clip-vit-h-14-23", "scheduler": {**_TIMES, "prediction_type": "v_prediction"}},
    "xl": {**_FIRST, "unet": _XL, "vae": {**_VAE, "sample_size": 1024, "scaling_factor": 0.13025},
           "text_encoder_2": "clip-vit-bigg-14", "tokenizer_2": "clip-vit-bigg-14"},
    "autoencoder": {"": _VAE},
    "autoencoder xl": {"": {**_VAE, "sample_size": 1024, "scaling_factor": 0.13025}},
}  # fmt: skip
_NAMES = {
    "first": "stable-diffusion-v1-5 stable-diffusion-v1-4 stable-diffusion-v1-3 dreamlike-photoreal-2.0",
    "second base": "stable-diffusion-2-1-base stable-diffusion-2-base",
    "second": "stable-diffusion-2-1 stable-diffusion-2",
    "xl": "stable-diffusion-xl-base-1.0 stable-diffusion-xl-base-0.9",
    "autoencoder": "sd-vae-ft-mse sd-vae-ft-ema",
    "autoencoder xl": "sdxl-vae sdxl-vae-fp16-fix",
}
_PIPELINES = {name: _KINDS[kind] for kind, names in _NAMES.items() for name in names.split()}


def part(name, subfolder):
    """Of a known pipeline's part: its configuration, or the name that carma.hub knows; else the name itself."""
    last = str(name).rstrip("/").rpartition("/")[2].lower()
    return _PIPELINES.get(last, {}).get(subfolder or "", name)


def changes(stack, put, recorder):
    """{module: change}"""

    def published(name, kwargs, missing):
        """What is known of a part that could not be had; where nothing is, that error goes on."""
        known = part(name, kwargs.get("subfolder"))
        if not isinstance(known, dict):
            raise missing
        recorder.doubt(f"{name} is not here: its published sizes stand in", 0)
        return known

    def configurations(module):
        original = module.ConfigMixin.load_config.__func__

        def load_config(cls, pretrained_model_name_or_path=None, *args, **kwargs):
            name = pretrained_model_name_or_path
            try:
                return original(cls, name, *args, **kwargs)
            except OSError as missing:
                known = published(name, kwargs, missing)
            more = [made for name, made in (("return_unused_kwargs", {}), ("return_commit_hash", None)) if kwargs.get(name)]
            return (dict(known), *more) if more else dict(known)

        put(stack, module.ConfigMixin, "load_config", classmethod(load_config))

    def models(module):
        original = module.ModelMixin.from_pretrained.__func__

        def from_pretrained(cls, name, *args, **kwargs):
            try:
                return original(cls, name, *args, **kwargs)
            except OSError as missing:
                known = published(name, kwargs, missing)
            with torch.device("meta"):
                model = cls.from_config(known)
            return model.to_empty(device="cpu").to(kwargs.get("torch_dtype") or torch.float32).eval()

        put(stack, module.ModelMixin, "from_pretrained", classmethod(from_pretrained))

    return {"diffusers.configuration_utils": configurations, "diffusers.models.modeling_utils": models}
