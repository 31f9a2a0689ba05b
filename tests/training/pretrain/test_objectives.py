"""Losses against those of transformers, how windows are framed, and that sums add up."""

from pathlib import Path

import numpy as np
import pytest
import torch
from made_windows import N_TOKENS, vocabulary, window, windows
from tokenizers import Tokenizer, models
from transformers import (
    BertConfig,
    BertForPreTraining,
    ElectraConfig,
    ElectraForMaskedLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
)

from model.architectures.elmo import ElmoLanguageModel
from model.architectures.elmo_files import ElmoConfig
from model.architectures.gpt import GptLanguageModel, build_decoder
from model.errors import BadInput
from model.tokenization.words import BEGIN_TEXT, END_TEXT, UNKNOWN, WordTokenizer
from training.device import to_tensors
from training.pretrain.bert_objective import IS_NEXT, IS_RANDOM, MASKED_LM, NEXT_SENTENCE, BertObjective
from training.pretrain.elmo_objective import ElmoObjective
from training.pretrain.gpt_objective import GptObjective
from training.pretrain.masking import IGNORED, RowRandom
from training.pretrain.objectives import Batch, Objective
from training.pretrain.tokens import BITS_TO_SPELL, TokenTable
from training.pretrain.windows import Window

CLS, SEP, MASK = 2, 3, 4


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> TokenTable:
    return TokenTable.read(vocabulary(tmp_path_factory.mktemp("vocabulary")))


def tiny(tokens: TokenTable, **options: bool) -> BertObjective:
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=N_TOKENS,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    return BertObjective(model=BertForPreTraining(config).eval(), tokens=tokens, **options)


def other_text(generator: np.random.Generator, of: Window, longest: int) -> Window:
    return window(generator, 999, longest)


def collate(objective: Objective, texts: list[Window], *, seed: int = 0, step: int = 0, first: int = 0) -> Batch:
    random = RowRandom(seed)
    return objective.collate(texts, lambda number: random.at(step, first + number), other_text)


def test_both_losses_and_their_gradients_equal_those_of_transformers(tokens: TokenTable) -> None:
    objective = tiny(tokens)
    batch = collate(objective, windows(40))
    assert set(batch.inputs["next_sentence_labels"]) == {IS_NEXT, IS_RANDOM, IGNORED}
    inputs = to_tensors(batch.inputs, torch.device("cpu"))
    sums = objective.losses(inputs)
    ours = sum(sums[part] / batch.counts[part] for part in objective.parts)
    labels = torch.full(inputs["input_ids"].shape, IGNORED)
    labels.view(-1)[inputs["masked_places"]] = inputs["masked_ids"]
    theirs = objective.model(
        input_ids=inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        token_type_ids=inputs["token_type_ids"],
        labels=labels,
        next_sentence_label=inputs["next_sentence_labels"],
    ).loss  # transformers gives means
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    parameters = list(objective.model.parameters())
    for our, their in zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True):
        torch.testing.assert_close(our, their, rtol=1e-4, atol=1e-7)


def test_an_electra_s_loss_equals_that_of_transformers(tokens: TokenTable) -> None:
    torch.manual_seed(1)
    config = ElectraConfig(
        vocab_size=N_TOKENS, embedding_size=16, hidden_size=32, num_hidden_layers=1, num_attention_heads=4
    )
    objective = BertObjective(model=ElectraForMaskedLM(config).eval(), tokens=tokens, next_sentence=False)
    batch = collate(objective, windows(20))
    inputs = to_tensors(batch.inputs, torch.device("cpu"))
    labels = torch.full(inputs["input_ids"].shape, IGNORED)
    labels.view(-1)[inputs["masked_places"]] = inputs["masked_ids"]
    given = {name: inputs[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    theirs = objective.model(**given, labels=labels).loss
    torch.testing.assert_close(objective.losses(inputs)[MASKED_LM] / batch.counts[MASKED_LM], theirs)


def test_the_parts_of_a_batch_add_up_to_the_whole(tokens: TokenTable) -> None:
    objective, texts = tiny(tokens), windows(30)
    whole = collate(objective, texts)
    halves = [collate(objective, texts[:11]), collate(objective, texts[11:], first=11)]
    for part in objective.parts:
        assert whole.counts[part] == sum(half.counts[part] for half in halves)
        sums = [
            objective.losses(to_tensors(batch.inputs, torch.device("cpu")))[part].item() for batch in (whole, *halves)
        ]
        assert sums[0] == pytest.approx(sum(sums[1:]), rel=1e-5)
    assert whole.tokens == sum(half.tokens for half in halves)


def test_half_of_the_next_texts_are_random_and_no_longer_than_the_real_ones(tokens: TokenTable) -> None:
    objective, texts = tiny(tokens), windows(4000)
    batch = collate(objective, texts)
    labels = batch.inputs["next_sentence_labels"]
    several = np.array([len(text.sentence_starts) > 1 for text in texts])
    assert ((labels != IGNORED) == several).all()
    assert (labels[several] == IS_RANDOM).mean() == pytest.approx(0.5, abs=0.04)
    assert batch.counts[NEXT_SENTENCE] == several.sum()
    ids, segments = batch.inputs["input_ids"], batch.inputs["token_type_ids"]
    assert ((ids == SEP).sum(1) == np.where(several, 2, 1)).all()
    assert (ids[:, 0] == CLS).all()
    lengths = batch.inputs["attention_mask"].sum(1)
    assert (lengths == [text.length + (3 if pair else 2) for text, pair in zip(texts, several, strict=True)]).all()
    assert (ids[np.arange(len(ids)), lengths - 1] == SEP).all()
    for row in np.flatnonzero(several)[:50]:
        first = int(np.flatnonzero(ids[row] == SEP)[0])
        assert first - 1 in texts[row].sentence_starts[1:]
        assert segments[row, : first + 1].sum() == 0
        assert segments[row, first + 1 : lengths[row]].all()
    assert segments[~several].sum() == 0


def test_a_corpus_of_one_document_has_no_random_text_to_swap_in(tokens: TokenTable) -> None:
    objective, random = tiny(tokens), RowRandom(0)
    batch = objective.collate(windows(50), lambda number: random.at(0, number), lambda *_: None)
    assert set(batch.inputs["next_sentence_labels"]) == {IS_NEXT, IGNORED}


def test_special_tokens_and_padding_are_never_masked(tokens: TokenTable) -> None:
    objective = tiny(tokens, whole_words=True)
    for step in range(20):
        batch = collate(objective, windows(30, seed=step), step=step)
        places = batch.inputs["masked_places"]
        original = batch.inputs["input_ids"].copy().reshape(-1)
        original[places] = batch.inputs["masked_ids"]
        assert original[places].min() >= 5
        assert (original == MASK).sum() == 0
        assert len(set(places)) == batch.counts[MASKED_LM] == len(batch.inputs["masked_ids"])


def test_rows_of_one_length_need_no_attention_mask(tokens: TokenTable) -> None:
    objective, random = tiny(tokens, next_sentence=False), np.random.default_rng(0)
    batch = collate(objective, [window(random, number, 9) for number in range(5)])
    assert "attention_mask" not in batch.inputs
    assert "next_sentence_labels" not in batch.inputs
    assert batch.inputs["input_ids"].shape == (5, 11)


def test_an_unknown_token_costs_its_spelling(tokens: TokenTable) -> None:
    objective, random = tiny(tokens, next_sentence=False), np.random.default_rng(0)
    text = window(random, 0, 12)
    text.ids[:] = 1  # [UNK]
    batch = collate(objective, [text] * 40)
    assert batch.counts[MASKED_LM] > 0
    assert batch.spelling == pytest.approx(BITS_TO_SPELL * batch.counts[MASKED_LM])
    assert batch.characters == batch.counts[MASKED_LM]


def test_tokens_count_the_characters_that_they_stand_for(tmp_path: Path) -> None:
    tokens = ["[PAD]", "[UNK]", "[unused1]", "[CLS]", "房", "##ing", "▁", "▁早餐"]
    engine = Tokenizer(models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    engine.add_special_tokens(["[PAD]", "[UNK]", "[CLS]"])
    engine.save(str(tmp_path / "tokenizer.json"))
    table = TokenTable.read(tmp_path)
    assert table.characters.tolist() == [0, 1, 0, 0, 1, 3, 0, 2]
    assert table.ordinary.tolist() == [4, 5, 6, 7]
    assert table.special == {"pad": 0, "unknown": 1, "cls": 3}


def test_a_vocabulary_without_mask_is_refused(tmp_path: Path) -> None:
    table = TokenTable.read(vocabulary(tmp_path, special=["[PAD]", "[UNK]", "[CLS]", "[SEP]"]))
    with pytest.raises(BadInput, match=r"lacks \[MASK\], which --arch bert needs"):
        table.require("cls", "sep", "mask", "pad", arch="bert")


def tiny_gpt(tokens: TokenTable) -> GptObjective:
    torch.manual_seed(1)
    config = OpenAIGPTConfig(vocab_size=N_TOKENS, n_positions=64, n_embd=32, n_layer=2, n_head=4)
    return GptObjective(model=GptLanguageModel(build_decoder(config)).eval(), tokens=tokens)


def test_gpt_foretells_every_token_with_the_loss_of_transformers(tokens: TokenTable) -> None:
    objective, texts = tiny_gpt(tokens), windows(20)
    batch = collate(objective, texts)
    assert (batch.inputs["input_ids"][:, 0] == CLS).all()
    assert batch.counts["next_token"] == sum(text.length for text in texts) == batch.characters
    inputs = to_tensors(batch.inputs, torch.device("cpu"))
    theirs = OpenAIGPTLMHeadModel(objective.model.decoder.config).eval()
    theirs.transformer.load_state_dict(objective.model.decoder.state_dict())
    labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, IGNORED)
    mean = theirs(inputs_embeds=theirs.transformer.tokens_embed(inputs["input_ids"]), labels=labels).loss
    ours = objective.losses(inputs)["next_token"] / batch.counts["next_token"]
    torch.testing.assert_close(ours, mean, rtol=1e-5, atol=1e-6)


def test_a_decoder_without_a_begin_token_is_given_the_first_one(tmp_path: Path) -> None:
    objective, texts = tiny_gpt(TokenTable.read(vocabulary(tmp_path, special=["[PAD]", "[UNK]"]))), windows(20)
    batch = collate(objective, texts)
    assert (batch.inputs["input_ids"][:, 0] == [text.ids[0] for text in texts]).all()
    assert batch.counts["next_token"] == sum(text.length - 1 for text in texts) == batch.characters


@pytest.fixture(scope="module")
def words() -> WordTokenizer:
    return WordTokenizer(
        words=["房间", "酒店", "干净", "很", "早餐", "好", "便宜", "，", "。", "服务员", "快"],
        characters="房间酒店干净很早餐好",
    )


def tiny_elmo(words: WordTokenizer) -> ElmoObjective:
    torch.manual_seed(1)
    config = ElmoConfig(
        vocabulary_size=words.vocabulary_size,
        n_characters=words.n_characters,
        word_length=words.word_length,
        character_size=8,
        filters=((1, 8), (2, 8)),
        projection_size=16,
        cell_size=24,
        sampled_words=8,
    )
    return ElmoObjective(model=ElmoLanguageModel(config, torch.from_numpy(words.characters_of_words)).eval())


def window_of(words: WordTokenizer, text: list[str]) -> Window:
    encoded = words.encode_words(text)
    n = len(text)
    return Window(
        ids=encoded.ids,
        sentence_starts=np.zeros(1, np.int64),
        word_starts=np.ones(n, bool),
        document=0,
        n_characters=len("".join(text)),
        characters=encoded.characters,
    )


def test_elmo_reads_windows_as_its_tokenizer_frames_texts(words: WordTokenizer) -> None:
    objective = tiny_elmo(words)
    texts = [["房间", "很", "干净"], ["酒店", "好", "。", "早餐", "好"]]
    batch = collate(objective, [window_of(words, text) for text in texts])
    assert batch.inputs["word_ids"][0].tolist() == [BEGIN_TEXT, *words.encode_words(texts[0]).ids, END_TEXT, 0, 0]
    inputs = to_tensors(batch.inputs, torch.device("cpu"))
    loss = objective.model.loss(inputs["word_ids"], inputs["char_ids"], inputs["attention_mask"])
    assert batch.counts == {"forward": loss.count, "backward": loss.count} == {"forward": 10, "backward": 10}
    losses = objective.losses(inputs)
    torch.testing.assert_close(losses["forward"], loss.forward)
    torch.testing.assert_close(losses["backward"], loss.backward)
    assert batch.characters == 2 * (5 + 7)  # both directions say the text
    assert batch.spelling == 0


def test_an_unknown_word_costs_its_characters(words: WordTokenizer) -> None:
    batch = collate(tiny_elmo(words), [window_of(words, ["房间", "很", "净好", "净楼"])])
    ids = batch.inputs["word_ids"][0]
    assert (ids == UNKNOWN).sum() == 2
    a_character = np.log2(words.n_characters)
    # two words of two characters and an end each, one of which has to be spelled; said by both directions
    assert batch.spelling == pytest.approx(2 * (2 * 3 * a_character + BITS_TO_SPELL))


def test_an_example_is_as_long_as_a_text_can_be(tokens: TokenTable, words: WordTokenizer) -> None:
    for objective in (tiny(tokens), tiny_gpt(tokens), tiny_elmo(words)):
        batch = collate(objective, [objective.example(32 - objective.framing)] * 3)
        assert batch.places == 3 * 32
        assert all(
            np.isfinite(loss.item())
            for loss in objective.losses(to_tensors(batch.inputs, torch.device("cpu"))).values()
        )
