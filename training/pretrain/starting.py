"""The model and the task that a pretraining begins with: new at random, or one that is trained already.

What can't be trained is refused here, before the corpus is read: a model of another architecture, too few positions,
a vocabulary without the special tokens, or of more tokens than the model has embeddings.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from model.architectures.elmo import ElmoLanguageModel
from model.architectures.elmo_files import MODEL_TYPE as ELMO
from model.architectures.foreign_weights import load_for_pretraining, new_for_pretraining
from model.architectures.gpt import GptLanguageModel, build_decoder
from model.errors import BadInput
from model.files import read_json
from model.tokenization import words
from training.pretrain.bert_objective import BertObjective
from training.pretrain.configs import Arch, Attention, ElmoSize, TransformerSize
from training.pretrain.elmo_objective import ElmoObjective
from training.pretrain.gpt_objective import GptObjective
from training.pretrain.objectives import Objective
from training.pretrain.tokens import TokenTable

# Architecture → the model types that it goes on with
MODEL_TYPES = {
    Arch.BERT: ("bert", "ernie", "electra"),
    Arch.NEZHA: ("nezha",),
    Arch.GPT: ("openai-gpt", "gpt2"),
    Arch.ELMO: (ELMO,),
}
NEEDED = {
    Arch.BERT: ("cls", "sep", "mask", "pad"),
    Arch.NEZHA: ("cls", "sep", "mask", "pad"),
    Arch.GPT: (),
    Arch.ELMO: (),
}


def positions(folder: Path, *, init: str, arch: Arch) -> int | None:
    """How long a text the model in `folder` can read; None if there is no limit.

    Raises:
        BadInput: it is a model of another architecture.
    """
    try:
        config = dict(read_json(folder / "config.json"))
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"--init {init}: config.json can't be read ({error!r}); save the model again") from None
    if (found := config.get("model_type")) not in MODEL_TYPES[arch]:
        owner = next((other for other, types in MODEL_TYPES.items() if found in types), None)
        way_out = f"give --arch {owner}" if owner else "it can't be pretrained further here"
        raise BadInput(
            f"--init {init} is of type {found}, --arch {arch} trains {' or '.join(MODEL_TYPES[arch])}; {way_out}"
        )
    if arch in (Arch.NEZHA, Arch.ELMO):
        return None
    limit = config.get("max_position_embeddings", config.get("n_positions"))
    return int(limit) if limit is not None else 512  # the default of all of them


def check_vocabulary(tokenizer: Path, *, arch: Arch) -> None:
    """Refuse a vocabulary that lacks what `arch` needs.

    Raises:
        BadInput: it does, or it can't be read.
    """
    if arch is Arch.ELMO:
        words.load(tokenizer, max_length=1)
    else:
        TokenTable.read(tokenizer).require(*NEEDED[arch], arch=arch)


def new_objective(
    arch: Arch,
    size: TransformerSize | ElmoSize,
    tokenizer: Path | None,
    *,
    attention: Attention,
    whole_words: bool,
    next_sentence: bool,
) -> Objective:
    """The task of `arch` for a new model of `size`, with random weights by torch's generator.

    tokenizer: its folder; None for a trial, with a vocabulary of as many tokens as there may be.
    """
    if isinstance(size, ElmoSize):
        if tokenizer is None:
            return _trial_of_words(size)
        vocabulary = words.load(tokenizer, max_length=size.max_length)
        config = size.config(
            vocabulary=vocabulary.vocabulary_size,
            characters=vocabulary.n_characters,
            word_length=vocabulary.word_length,
        )
        return ElmoObjective(model=ElmoLanguageModel(config, torch.from_numpy(vocabulary.characters_of_words)))
    tokens = TokenTable.made_up(size.vocabulary) if tokenizer is None else TokenTable.read(tokenizer)
    tokens.require(*NEEDED[arch], arch=arch)
    settings = size.config(arch, vocabulary=tokens.size, pad_id=tokens.special.get("pad", 0), attention=attention)
    if arch is Arch.GPT:
        return GptObjective(model=GptLanguageModel(build_decoder(settings)), tokens=tokens)
    # On a CPU, PyTorch 2.13's fused attention trains slower in bf16 than the plain one.
    settings._attn_implementation = "sdpa" if torch.cuda.is_available() and arch is Arch.BERT else "eager"
    return BertObjective(
        model=new_for_pretraining(settings), tokens=tokens, whole_words=whole_words, next_sentence=next_sentence
    )


def _trial_of_words(size: ElmoSize) -> ElmoObjective:
    word_length = words.LONGEST_WORD + words.WORD_ENDS
    config = size.config(vocabulary=size.vocabulary, characters=size.characters, word_length=word_length)
    characters = torch.randint(words.FIRST_CHARACTER, size.characters, (size.vocabulary, word_length))
    return ElmoObjective(model=ElmoLanguageModel(config, characters))


def continued_objective(
    arch: Arch,
    folder: Path,
    tokenizer: Path,
    *,
    attention: Attention | None,
    whole_words: bool,
    next_sentence: bool,
) -> Objective:
    """The task of `arch` for the model in `folder`. attention: None leaves it as it is.

    Raises:
        BadInput: the weights are not whole, the vocabulary is not theirs, or an ELECTRA is to predict next sentences.
    """
    if arch is Arch.ELMO:
        return ElmoObjective(model=ElmoLanguageModel.load(folder))
    tokens = TokenTable.read(tokenizer)
    tokens.require(*NEEDED[arch], arch=arch)
    changes: dict[str, Any] = {} if attention is None else {"attention": attention.value}
    objective: Objective
    if arch is Arch.GPT:
        gpt = GptLanguageModel.load(folder, **changes)
        objective, rows = GptObjective(model=gpt, tokens=tokens), gpt.decoder.config.vocab_size
    else:
        bert = load_for_pretraining(folder)
        if next_sentence and bert.config.model_type == "electra":
            raise BadInput("--next-sentence has no meaning for an electra, which has no pooler; leave it out")
        objective = BertObjective(model=bert, tokens=tokens, whole_words=whole_words, next_sentence=next_sentence)
        rows = bert.config.vocab_size
    if tokens.size > rows:
        raise BadInput(
            f"the tokenizer in {folder} has {tokens.size:,} tokens, the model {rows:,} embeddings; they don't belong "
            "together, copy both from one place"
        )
    return objective


def checkpoint_activations(model: nn.Module) -> None:
    """Let every Transformer layer of `model` forget what it computed, and compute it again on the way back."""
    layers: Any = getattr(model, "decoder", model)
    if layers.supports_gradient_checkpointing:
        layers.activation_checkpointing_enable()
        return
    for layer in layers.h:  # transformers' OpenAIGPTModel can't by itself
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
