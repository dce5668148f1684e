"""Models and data sets of the Hugging Face hub by their names: sizes and forms, as published with them (data/NOTICE). A
capture needs no more: `from_pretrained("bert-base-uncased")` and `load_dataset("imdb")` are recorded without a network
(carma.from_hub)."""

# Of a model type: the members of its config.json that a row gives, members that all of its rows share, and its tokens.
_WIDE = "hidden_size num_hidden_layers num_attention_heads intermediate_size vocab_size"
_LLAMA = (
    "hidden_size num_hidden_layers num_attention_heads num_key_value_heads intermediate_size vocab_size "
    "max_position_embeddings tie_word_embeddings"
)
_IDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
_ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1, **_IDS}
_DEBERTA = {"relative_attention": True, "position_biased_input": False, "type_vocab_size": 0}
_T5 = "d_model num_layers num_heads d_kv d_ff vocab_size"
_STARTS = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
_V11 = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
_SEQUENCES = (
    "d_model encoder_layers decoder_layers encoder_attention_heads decoder_attention_heads encoder_ffn_dim "
    "decoder_ffn_dim vocab_size max_position_embeddings"
)
_HALF, _BRAIN = {"torch_dtype": "float16"}, {"torch_dtype": "bfloat16"}
_VISION = "hidden_size num_hidden_layers num_attention_heads intermediate_size image_size patch_size"
TYPES = {
    "bert": (_WIDE, {}, "bert"),
    "electra": (_WIDE + " embedding_size", {}, "bert"),
    "albert": (_WIDE + " embedding_size", {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}, "bert"),
    "mpnet": (_WIDE, {"max_position_embeddings": 514}, "roberta"),
    "distilbert": ("dim n_layers n_heads hidden_dim vocab_size", {}, "bert"),
    "roberta": (_WIDE, _ROBERTA, "roberta"),
    "camembert": (_WIDE, _ROBERTA, "roberta"),
    "xlm-roberta": (_WIDE, _ROBERTA, "roberta"),
    "deberta": (_WIDE, {**_DEBERTA, "pos_att_type": ["c2p", "p2c"]}, "bert"),
    "deberta-v2": (_WIDE, {**_DEBERTA, "pos_att_type": ["p2c", "c2p"], "position_buckets": 256, "share_att_key": True,
                           "norm_rel_ebd": "layer_norm"}, "bert"),
    "modernbert": (_WIDE, {"max_position_embeddings": 8192}, "bert"),
    "gpt2": ("n_embd n_layer n_head vocab_size", {}, "gpt"),
    "gpt_neo": ("hidden_size num_layers num_heads vocab_size attention_types", {}, "gpt"),
    "gpt_neox": (_WIDE, {"max_position_embeddings": 2048, **_HALF}, "gpt"),
    "opt": ("hidden_size num_hidden_layers num_attention_heads ffn_dim vocab_size word_embed_proj_dim "
            "do_layer_norm_before", _HALF, "opt"),
    "bloom": ("hidden_size n_layer n_head vocab_size", {}, "llama"),
    "phi": (_WIDE, {"max_position_embeddings": 2048, **_HALF}, "gpt"),
    "phi3": (_LLAMA, _BRAIN, "llama"),
    "llama": (_LLAMA, _BRAIN, "llama"),
    "mistral": (_LLAMA, _BRAIN, "llama"),
    "qwen2": (_LLAMA, _BRAIN, "qwen"),
    "qwen3": (_LLAMA + " head_dim", _BRAIN, "qwen"),
    "gemma": (_LLAMA + " head_dim", _BRAIN, "llama"),
    "gemma2": (_LLAMA + " head_dim", _BRAIN, "llama"),
    "gemma3_text": (_LLAMA + " head_dim", _BRAIN, "llama"),
    "smollm3": (_LLAMA, _BRAIN, "qwen"),
    "t5": (_T5, _STARTS, "t5"),
    "mt5": (_T5, {**_V11, **_STARTS}, "t5"),
    "bart": (_SEQUENCES, {**_IDS, "decoder_start_token_id": 2}, "roberta"),
    "marian": (_SEQUENCES, {"scale_embedding": True, **_STARTS}, "t5"),
    "pegasus": (_SEQUENCES, {"scale_embedding": True, **_STARTS}, "t5"),
    "clip_text_model": (_WIDE + " projection_dim hidden_act",
                        {"max_position_embeddings": 77, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}, "clip"),
    "vit": (_VISION, {}, "ViTImageProcessor"),
    "deit": (_VISION, {}, "DeiTImageProcessor"),
    "dinov2": ("hidden_size num_hidden_layers num_attention_heads image_size patch_size", {}, "BitImageProcessor"),
    "swin": ("embed_dim depths num_heads window_size", {}, "ViTImageProcessor"),
    "convnext": ("hidden_sizes depths", {}, "ConvNextImageProcessor"),
    "resnet": ("hidden_sizes depths layer_type", {}, "ConvNextImageProcessor"),
    "segformer": ("hidden_sizes depths decoder_hidden_size", {}, "SegformerImageProcessor"),
}  # fmt: skip

# The class that is published, where a script or a library may ask for it.
_ARCHITECTURES = {
    "bert": "BertForMaskedLM", "distilbert": "DistilBertForMaskedLM", "roberta": "RobertaForMaskedLM",
    "xlm-roberta": "XLMRobertaForMaskedLM", "camembert": "CamembertForMaskedLM", "gpt2": "GPT2LMHeadModel",
    "gpt_neo": "GPTNeoForCausalLM", "gpt_neox": "GPTNeoXForCausalLM", "opt": "OPTForCausalLM",
    "bloom": "BloomForCausalLM", "phi": "PhiForCausalLM", "phi3": "Phi3ForCausalLM", "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
    "gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM", "smollm3": "SmolLM3ForCausalLM", "t5": "T5ForConditionalGeneration",
    "mt5": "MT5ForConditionalGeneration", "bart": "BartForConditionalGeneration", "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
}  # fmt: skip

# Type, the row's numbers, names without their owners. A "+" ahead of the type has members of its own in MORE.
_MODELS = """
bert 768 12 12 3072 30522: bert-base-uncased bert-base-uncased-finetuned-mrpc
bert 768 12 12 3072 28996: bert-base-cased biobert-v1.1 biobert-base-cased-v1.2
bert 1024 24 16 4096 30522: bert-large-uncased bert-large-uncased-whole-word-masking bge-large-en-v1.5
bert 1024 24 16 4096 28996: bert-large-cased
bert 768 12 12 3072 119547: bert-base-multilingual-cased
bert 768 12 12 3072 105879: bert-base-multilingual-uncased
bert 768 12 12 3072 21128: bert-base-chinese chinese-bert-wwm-ext chinese-roberta-wwm-ext
bert 768 12 12 3072 31090: scibert_scivocab_uncased
bert 768 12 12 3072 30522: bge-base-en-v1.5 finbert e5-base-v2
bert 384 12 12 1536 30522: bge-small-en-v1.5 e5-small-v2 all-MiniLM-L12-v2
bert 384 6 12 1536 30522: all-MiniLM-L6-v2 ms-marco-MiniLM-L-6-v2
bert 128 2 2 512 30522: bert-tiny bert_uncased_L-2_H-128_A-2
mpnet 768 12 12 3072 30527: mpnet-base all-mpnet-base-v2
electra 256 12 4 1024 30522 128: electra-small-discriminator
electra 768 12 12 3072 30522 768: electra-base-discriminator
electra 1024 24 16 4096 30522 1024: electra-large-discriminator
albert 768 12 12 3072 30000 128: albert-base-v2 albert-base-v1
albert 1024 24 16 4096 30000 128: albert-large-v2
distilbert 768 6 12 3072 30522: distilbert-base-uncased distilbert-base-uncased-finetuned-sst-2-english
distilbert 768 6 12 3072 28996: distilbert-base-cased distilbert-base-cased-distilled-squad
distilbert 768 6 12 3072 119547: distilbert-base-multilingual-cased
roberta 768 12 12 3072 50265: roberta-base codebert-base twitter-roberta-base-sentiment
roberta 1024 24 16 4096 50265: roberta-large roberta-large-mnli
roberta 768 6 12 3072 50265: distilroberta-base
camembert 768 12 12 3072 32005: camembert-base
xlm-roberta 768 12 12 3072 250002: xlm-roberta-base
xlm-roberta 1024 24 16 4096 250002: xlm-roberta-large multilingual-e5-large
deberta 768 12 12 3072 50265: deberta-base
deberta-v2 384 12 6 1536 128100: deberta-v3-xsmall
deberta-v2 768 6 12 3072 128100: deberta-v3-small
deberta-v2 768 12 12 3072 128100: deberta-v3-base
deberta-v2 1024 24 16 4096 128100: deberta-v3-large
modernbert 768 22 12 1152 50368: ModernBERT-base
modernbert 1024 28 16 2624 50368: ModernBERT-large
gpt2 768 12 12 50257: gpt2
gpt2 1024 24 16 50257: gpt2-medium DialoGPT-medium
gpt2 1280 36 20 50257: gpt2-large
gpt2 1600 48 25 50257: gpt2-xl
gpt2 768 6 12 50257: distilgpt2
gpt_neo 768 12 12 50257 6: gpt-neo-125m gpt-neo-125M
gpt_neo 2048 24 16 50257 12: gpt-neo-1.3B
gpt_neo 2560 32 20 50257 16: gpt-neo-2.7B
gpt_neox 512 6 8 2048 50304: pythia-70m pythia-70m-deduped
gpt_neox 768 12 12 3072 50304: pythia-160m pythia-160m-deduped
gpt_neox 1024 24 16 4096 50304: pythia-410m pythia-410m-deduped
gpt_neox 2048 16 8 8192 50304: pythia-1b pythia-1b-deduped
gpt_neox 2048 24 16 8192 50304: pythia-1.4b pythia-1.4b-deduped
gpt_neox 2560 32 32 10240 50304: pythia-2.8b pythia-2.8b-deduped
gpt_neox 4096 32 32 16384 50432: pythia-6.9b pythia-6.9b-deduped
gpt_neox 5120 36 40 20480 50688: pythia-12b
opt 768 12 12 3072 50272 768 True: opt-125m
opt 1024 24 16 4096 50272 512 False: opt-350m
opt 2048 24 32 8192 50272 2048 True: opt-1.3b
opt 2560 32 32 10240 50272 2560 True: opt-2.7b
opt 4096 32 32 16384 50272 4096 True: opt-6.7b
bloom 1024 24 16 250880: bloom-560m bloomz-560m
bloom 1536 24 16 250880: bloom-1b1 bloomz-1b1
bloom 2560 30 32 250880: bloom-3b bloomz-3b
bloom 4096 30 32 250880: bloom-7b1 bloomz-7b1
phi 2048 24 32 8192 51200: phi-1_5
phi 2560 32 32 10240 51200: phi-2
phi3 3072 32 32 32 8192 32064 4096 False: Phi-3-mini-4k-instruct
phi3 3072 32 32 32 8192 32064 131072 False: Phi-3-mini-128k-instruct Phi-3.5-mini-instruct
+llama 4096 32 32 32 11008 32000 4096 False: Llama-2-7b-hf Llama-2-7b-chat-hf
+llama 5120 40 40 40 13824 32000 4096 False: Llama-2-13b-hf Llama-2-13b-chat-hf
+llama 4096 32 32 32 11008 32000 2048 False: llama-7b vicuna-7b-v1.5
llama 4096 32 32 8 14336 128256 8192 False: Meta-Llama-3-8B Meta-Llama-3-8B-Instruct
llama 4096 32 32 8 14336 128256 131072 False: Llama-3.1-8B Llama-3.1-8B-Instruct
llama 4096 32 32 8 14336 128256 131072 False: Meta-Llama-3.1-8B Meta-Llama-3.1-8B-Instruct
llama 2048 16 32 8 8192 128256 131072 True: Llama-3.2-1B Llama-3.2-1B-Instruct
llama 3072 28 24 8 8192 128256 131072 True: Llama-3.2-3B Llama-3.2-3B-Instruct
llama 2048 22 32 4 5632 32000 2048 False: TinyLlama-1.1B-Chat-v1.0 TinyLlama-1.1B-intermediate-step-1431k-3T
llama 576 30 9 3 1536 49152 8192 True: SmolLM2-135M SmolLM2-135M-Instruct
llama 960 32 15 5 2560 49152 8192 True: SmolLM2-360M SmolLM2-360M-Instruct
llama 2048 24 32 32 8192 49152 8192 True: SmolLM2-1.7B SmolLM2-1.7B-Instruct
mistral 4096 32 32 8 14336 32000 32768 False: Mistral-7B-v0.1 Mistral-7B-Instruct-v0.1 zephyr-7b-beta
mistral 4096 32 32 8 14336 32000 32768 False: Mistral-7B-Instruct-v0.2
mistral 4096 32 32 8 14336 32768 32768 False: Mistral-7B-v0.3 Mistral-7B-Instruct-v0.3
qwen2 896 24 14 2 4864 151936 32768 True: Qwen2-0.5B Qwen2-0.5B-Instruct Qwen2.5-0.5B Qwen2.5-0.5B-Instruct
qwen2 1536 28 12 2 8960 151936 32768 True: Qwen2-1.5B Qwen2-1.5B-Instruct Qwen2.5-1.5B Qwen2.5-1.5B-Instruct
qwen2 2048 36 16 2 11008 151936 32768 True: Qwen2.5-3B Qwen2.5-3B-Instruct
qwen2 3584 28 28 4 18944 152064 32768 False: Qwen2-7B Qwen2-7B-Instruct Qwen2.5-7B Qwen2.5-7B-Instruct
qwen2 5120 48 40 8 13824 152064 32768 False: Qwen2.5-14B Qwen2.5-14B-Instruct
qwen3 1024 28 16 8 3072 151936 40960 True 128: Qwen3-0.6B Qwen3-0.6B-Base
qwen3 2048 28 16 8 6144 151936 40960 True 128: Qwen3-1.7B Qwen3-1.7B-Base
qwen3 2560 36 32 8 9728 151936 40960 True 128: Qwen3-4B Qwen3-4B-Base
qwen3 4096 36 32 8 12288 151936 40960 False 128: Qwen3-8B Qwen3-8B-Base
gemma 2048 18 8 1 16384 256000 8192 True 256: gemma-2b gemma-2b-it
gemma 3072 28 16 16 24576 256000 8192 True 256: gemma-7b gemma-7b-it
gemma2 2304 26 8 4 9216 256000 8192 True 256: gemma-2-2b gemma-2-2b-it
gemma2 3584 42 16 8 14336 256000 8192 True 256: gemma-2-9b gemma-2-9b-it
gemma3_text 1152 26 4 1 6912 262144 32768 True 256: gemma-3-1b-it gemma-3-1b-pt
smollm3 2048 36 16 4 11008 128256 65536 True: SmolLM3-3B SmolLM3-3B-Base
t5 512 6 8 64 2048 32128: t5-small
t5 768 12 12 64 3072 32128: t5-base
t5 1024 24 16 64 4096 32128: t5-large
+t5 512 8 6 64 1024 32128: flan-t5-small t5-v1_1-small
+t5 768 12 12 64 2048 32128: flan-t5-base t5-v1_1-base
+t5 1024 24 16 64 2816 32128: flan-t5-large t5-v1_1-large
+t5 2048 24 32 64 5120 32128: flan-t5-xl t5-v1_1-xl
mt5 512 8 6 64 1024 250112: mt5-small
mt5 768 12 12 64 2048 250112: mt5-base
bart 768 6 6 12 12 3072 3072 50265 1024: bart-base
bart 1024 12 12 16 16 4096 4096 50265 1024: bart-large
bart 1024 12 12 16 16 4096 4096 50264 1024: bart-large-cnn bart-large-xsum
marian 512 6 6 8 8 2048 2048 58101 512: opus-mt-en-de
marian 512 6 6 8 8 2048 2048 59514 512: opus-mt-en-fr
marian 512 6 6 8 8 2048 2048 59543 512: opus-mt-en-ro
marian 512 6 6 8 8 2048 2048 65001 512: opus-mt-en-zh opus-mt-zh-en
pegasus 1024 16 16 16 16 4096 4096 96103 512: pegasus-xsum
clip_text_model 768 12 12 3072 49408 768 quick_gelu: clip-vit-large-patch14
clip_text_model 1024 23 16 4096 49408 512 gelu: clip-vit-h-14-23
clip_text_model 1280 32 20 5120 49408 1280 gelu: clip-vit-bigg-14
vit 768 12 12 3072 224 16: vit-base-patch16-224 vit-base-patch16-224-in21k
vit 768 12 12 3072 384 16: vit-base-patch16-384
vit 768 12 12 3072 224 32: vit-base-patch32-224-in21k
vit 1024 24 16 4096 224 16: vit-large-patch16-224 vit-large-patch16-224-in21k
deit 192 12 3 768 224 16: deit-tiny-patch16-224
deit 384 12 6 1536 224 16: deit-small-patch16-224
deit 768 12 12 3072 224 16: deit-base-patch16-224
dinov2 384 12 6 518 14: dinov2-small
dinov2 768 12 12 518 14: dinov2-base
dinov2 1024 24 16 518 14: dinov2-large
swin 96 2,2,6,2 3,6,12,24 7: swin-tiny-patch4-window7-224
swin 128 2,2,18,2 4,8,16,32 7: swin-base-patch4-window7-224
convnext 96,192,384,768 3,3,9,3: convnext-tiny-224
convnext 128,256,512,1024 3,3,27,3: convnext-base-224
resnet 64,128,256,512 2,2,2,2 basic: resnet-18
resnet 256,512,1024,2048 3,4,6,3 bottleneck: resnet-50
resnet 256,512,1024,2048 3,4,23,3 bottleneck: resnet-101
segformer 32,64,160,256 2,2,2,2 256: mit-b0 segformer-b0-finetuned-ade-512-512
segformer 64,128,320,512 2,2,2,2 256: mit-b1
"""
MORE = {"+llama": _HALF, "+t5": _V11}


def _number(word):
    if "," in word:
        return [int(part) for part in word.split(",")]
    return {"True": True, "False": False}.get(word, int(word) if word.isdigit() else word)


def _read():
    models = {}
    for line in _MODELS.split("\n"):
        if line:
            row, names = line.split(": ")
            kind, *numbers = row.split()
            for name in names.split():
                models[name.lower()] = (kind, [_number(word) for word in numbers])
    return models


MODELS = _read()


def _last(name):
    return str(name).rstrip("/").rpartition("/")[2].lower()


def config(name):
    """The config.json of a model of that name, or None."""
    kind, numbers = MODELS.get(_last(name), (None, None))
    if kind is None:
        return None
    model_type = kind.lstrip("+")
    members, shared, _ = TYPES[model_type]
    made = {"model_type": model_type, **shared, **MORE.get(kind, {}), **dict(zip(members.split(), numbers))}
    if model_type in _ARCHITECTURES:
        made["architectures"] = [_ARCHITECTURES[model_type]]
    if kind == "gpt_neo":
        made["attention_types"] = [[["global", "local"], made["attention_types"]]]
    return made


def image_processor(name):
    """{"image_processor_type": ...} of a model of images, or None."""
    kind, _ = MODELS.get(_last(name), ("", None))
    tokens = TYPES[kind.lstrip("+")][2] if kind else ""
    return {"image_processor_type": tokens} if tokens.endswith("Processor") else None


# Of tokenizers: the special tokens with their numbers, what stands around one text and around two, and which of the
# special tokens are named so.
_SPECIAL = {
    "bert": ({"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103},
             "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", "pad [PAD] unk [UNK] cls [CLS] sep [SEP] mask [MASK]"),
    "roberta": ({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4},
                "<s> $A </s>", "<s> $A </s> </s> $B </s>",
                "pad <pad> unk <unk> cls <s> sep </s> bos <s> eos </s> mask <mask>"),
    "gpt": ({"<|endoftext|>": -1}, "$A", "$A $B", "bos <|endoftext|> eos <|endoftext|> unk <|endoftext|>"),
    "clip": ({"<|startoftext|>": -2, "<|endoftext|>": -1}, "<|startoftext|> $A <|endoftext|>",
             "<|startoftext|> $A $B <|endoftext|>",
             "bos <|startoftext|> eos <|endoftext|> pad <|endoftext|> unk <|endoftext|>"),
    "opt": ({"<s>": 0, "<pad>": 1, "</s>": 2}, "</s> $A", "</s> $A </s> $B", "pad <pad> bos </s> eos </s>"),
    "llama": ({"<unk>": 0, "<s>": 1, "</s>": 2}, "<s> $A", "<s> $A <s> $B", "unk <unk> bos <s> eos </s>"),
    "qwen": ({"<|endoftext|>": -3, "<|im_start|>": -2, "<|im_end|>": -1}, "$A", "$A $B",
             "pad <|endoftext|> eos <|im_end|>"),
    "t5": ({"<pad>": 0, "</s>": 1, "<unk>": 2}, "$A </s>", "$A </s> $B </s>", "pad <pad> eos </s> unk <unk>"),
}  # fmt: skip
_CHAT = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + ' ' + message['content'] + '<|im_end|> ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant ' }}{% endif %}"
)
_PIECE = r"<\|\w+\|>|\w{1,6}|[^\w\s]"  # 1.3 of these for each English word, as many as trained vocabularies have


def tokenizer_size(name):
    """Words of a known model's; else 0."""
    return (config(name) or {}).get("vocab_size", 0)


def tokenizer(name):
    """One with the model's special tokens and as many words, which cuts texts into about as many tokens; or None."""
    made = config(name)
    kind = TYPES[made["model_type"]][2] if made else None
    if kind not in _SPECIAL:
        return None
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers, one, two, named = _SPECIAL[kind]
    size = made["vocab_size"]
    numbers = {token: number % size for token, number in numbers.items()}
    taken = set(numbers.values())
    vocabulary = {**numbers, **{f"word {number}": number for number in range(size) if number not in taken}}
    word = f"word {next(number for number in range(size // 2, size) if number not in taken)}"
    fast = Tokenizer(models.WordLevel(vocabulary, unk_token=word))
    fast.pre_tokenizer = pre_tokenizers.Split(Regex(_PIECE), "removed", invert=True)
    fast.post_processor = processors.TemplateProcessing(single=one, pair=two, special_tokens=list(numbers.items()))
    longest = made.get("max_position_embeddings", {"bert": 512, "gpt": 1024, "opt": 2048, "t5": 512}.get(kind, 1 << 30))
    answer = PreTrainedTokenizerFast(
        tokenizer_object=fast, model_max_length=512 if kind == "roberta" and longest == 514 else longest,
        model_input_names=["input_ids", *(["token_type_ids"] if kind == "bert" else []), "attention_mask"],
        **{f"{role}_token": token for role, token in zip(named.split()[::2], named.split()[1::2])},
    )  # fmt: skip
    answer.name_or_path = str(name)
    if kind in ("llama", "qwen"):
        answer.chat_template = _CHAT
    return answer


# Names of data sets without their owners, and their columns: a number of words (published means, or near them), "/N"
# one of N classes, "float", "number", "HxW" an image, "words" of a list and their tags "tags/N"; "chat"; "answers" of
# SQuAD; "translation/A/B".
_DATA = """
glue/cola: sentence 8 label /2 idx number
glue/sst2: sentence 10 label /2 idx number
glue/mrpc glue/rte glue/wnli: sentence1 20 sentence2 20 label /2 idx number
glue/stsb: sentence1 11 sentence2 11 label float idx number
glue/qqp: question1 11 question2 11 label /2 idx number
glue/qnli: question 10 sentence 28 label /2 idx number
glue/mnli: premise 20 hypothesis 10 label /3 idx number
snli: premise 14 hypothesis 8 label /3
imdb: text 230 label /2
ag_news: text 38 label /4
yelp_review_full: label /5 text 134
yelp_polarity: text 134 label /2
amazon_polarity: label /2 title 5 content 74
dbpedia_14: label /14 title 3 content 46
emotion: text 19 label /6
rotten_tomatoes: text 21 label /2
sst2: idx number sentence 10 label /2
tweet_eval: text 15 label /3
squad squad_v2: id 1 title 2 context 120 question 10 answers answers
wikitext: text 87
tinystories: text 180
openwebtext: text 600
cnn_dailymail: article 690 highlights 50 id 1
xsum: document 370 summary 21 id 1
samsum: id 1 dialogue 94 summary 20
billsum: text 1300 summary 180 title 20
opus_books kde4: id 1 translation translation/en/fr
wmt16: translation translation/en/ro/de
wmt14: translation translation/en/fr/de
conll2003: id 1 tokens words pos_tags tags/47 chunk_tags tags/23 ner_tags tags/9
wnut_17: id 1 tokens words ner_tags tags/13
alpaca: instruction 12 input 6 output 45 text 90
alpaca-cleaned: output 110 input 10 instruction 14
databricks-dolly-15k: instruction 12 context 60 response 60 category 1
english_quotes: quote 32 author 2 tags words
openassistant-guanaco guanaco-llama2-1k: text 240
capybara: source 1 messages chat num_turns number
ultrachat_200k: prompt 40 prompt_id 1 messages chat
ultrafeedback_binarized: chosen chat rejected chat score_chosen float score_rejected float
tldr: prompt 290 completion 30
gsm8k: question 45 answer 55
hh-rlhf: chosen 190 rejected 190
mnist fashion_mnist: image 28x28 label /10
cifar10: img 32x32 label /10
cifar100: img 32x32 fine_label /100 coarse_label /20
beans: image_file_path 1 image 500x500 labels /3
food101: image 512x512 label /101
cats_vs_dogs: image 375x500 labels /2
oxford_flowers102: image 500x667 label /102
naruto-blip-captions: image 1080x1080 text 8
pokemon-blip-captions: image 1280x1280 text 10
smithsonian_butterflies_subset: image 512x512 name 2
tiny-imagenet: image 64x64 label /200
imagenet-1k: image 375x500 label /1000
"""


def _read_data():
    data = {}
    for line in _DATA.split("\n"):
        if line:
            names, columns = line.split(": ")
            data.update(dict.fromkeys(names.split(), columns))
    return data


DATA = _read_data()
ROWS = {"train": 1000, "validation": 200, "test": 200}
_WORD = "example "


def _texts(words, rows):
    """Some are half as long, some twice: a batch is as long as its longest."""
    return [_WORD * max(1, round(words * (0.5, 1, 2)[row % 3])) for row in range(rows)]


def _column(form, rows):
    """(values, feature) of datasets."""
    import datasets

    head, *rest = form.split("/")
    number = int(rest[0]) if rest and rest[0].isdigit() else 0
    if head.isdigit():
        return _texts(int(head), rows), datasets.Value("string")
    if head == "":
        return [row % number for row in range(rows)], datasets.ClassLabel(names=[str(label) for label in range(number)])
    if head == "tags":
        labels = datasets.ClassLabel(names=[str(label) for label in range(number)])
        return [[0] * 15] * rows, datasets.Sequence(labels)
    if head == "words":
        return [["example"] * 15] * rows, datasets.Sequence(datasets.Value("string"))
    if head == "chat":
        turns = [{"role": role, "content": _WORD * 90} for role in ("user", "assistant")]
        return [turns] * rows, [{"role": datasets.Value("string"), "content": datasets.Value("string")}]
    if head == "answers":
        start = datasets.Sequence({"text": datasets.Value("string"), "answer_start": datasets.Value("int32")})
        return [{"text": ["example"], "answer_start": [0]}] * rows, start
    if head == "translation":
        return [dict.fromkeys(rest, text) for text in _texts(25, rows)], datasets.Translation(languages=rest)
    if head in ("float", "number"):
        whole = head == "number"
        return [row if whole else 0.5 for row in range(rows)], datasets.Value("int32" if whole else "float32")
    import io

    from PIL import Image

    high, wide = map(int, form.split("x"))
    data = io.BytesIO()
    Image.new("L" if high == 28 else "RGB", (wide, high)).save(data, "PNG")
    return [{"bytes": data.getvalue(), "path": None}] * rows, datasets.Image()


def _columns(path, name):
    last = _last(path)
    return DATA.get(f"{last}/{str(name).lower()}") or DATA.get(last)


def knows_data(path, name=None):
    return _columns(path, name) is not None


def data_set(path, name=None, split=None, streaming=False):
    """A known one: a data set of the same columns. Splits are those that most have."""
    import datasets

    columns = _columns(path, name)

    class Splits(datasets.IterableDatasetDict if streaming else datasets.DatasetDict):
        def __missing__(self, key):  # "validation_matched", "train_sft", "unsupervised"
            return self["train" if "train" in key else "validation"]

    words = columns.split()

    def rows_of(rows):
        parts = {key: _column(form, rows) for key, form in zip(words[::2], words[1::2])}
        whole = datasets.Dataset.from_dict(
            {key: values for key, (values, _) in parts.items()},
            features=datasets.Features({key: feature for key, (_, feature) in parts.items()}),
        )
        return whole.to_iterable_dataset() if streaming else whole

    answer = Splits({key: rows_of(rows) for key, rows in ROWS.items()})
    if split is None:
        return answer
    if isinstance(split, (list, tuple)):
        return [answer[str(part).partition("[")[0].partition("+")[0]] for part in split]
    return answer[str(split).partition("[")[0].partition("+")[0]]
