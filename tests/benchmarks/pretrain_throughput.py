"""Masked-language-model pretraining in real tokens a second: ours against transformers' Trainer, interleaved.

    python tests/benchmarks/pretrain_throughput.py --corpus FILE… --home SCRATCH [--steps 30] [--rounds 5]

Both train the same BERT (weights and configuration), in the same precision, on the same windows of the same token
store, with AdamW and as many real tokens a step; neither predicts next sentences. The Trainer has what its
documentation recommends: DataCollatorForLanguageModeling and padding to the longest of each batch. A round is so many
steps of one and then of the other, without their first ones; the figures are medians over rounds. Real tokens are
those that are no padding. Needs accelerate beside wenlei, which the Trainer asks for: pip install accelerate
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import statistics
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from transformers import (
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.utils import logging

from training.device import NumberFormat, pick_precision
from training.pretrain.bert_objective import BertObjective
from training.pretrain.configs import Arch, read_size
from training.pretrain.curves import CurveFile
from training.pretrain.loop import Pretraining
from training.pretrain.options import Options
from training.pretrain.pretrain import Plan, pretrain
from training.pretrain.starting import continued_objective
from training.pretrain.store import TokenStore

WARM = 3  # steps of each round that are not counted


def main() -> None:
    """Print a line a round, then the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="+", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True, help="scratch folder; the tokens are kept there")
    parser.add_argument("--config", default="small")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-tokens", type=int, default=8192)
    parser.add_argument("--precision", type=NumberFormat, default=NumberFormat.AUTO)
    asked = parser.parse_args()
    logging.set_verbosity_error()
    size = read_size(Arch.BERT, asked.config)
    options = Options(steps=0, batch_tokens=asked.batch_tokens, max_length=size.max_length, precision=asked.precision)
    plan = Plan(arch=Arch.BERT, corpus=tuple(asked.corpus), size=size, start=None, vocab=None, options=options, seed=0)
    run = pretrain(plan, out=asked.home / f"throughput-{Path(asked.config).stem}-{asked.batch_tokens}", resume=False)
    store = TokenStore.open(run.tokens_path)
    ours = Ours(run.model_path, store, asked)
    theirs = Theirs(run.model_path, store, asked, tokens_a_step=ours.tokens_a_step())
    say(f"{ours.loop.precision} on {ours.loop.device}, {torch.get_num_threads()} threads, {theirs.described}")
    speeds: dict[str, list[float]] = {"ours": [], "trainer": []}
    for number in range(asked.rounds):
        speeds["ours"].append(ours.round(asked.steps))
        speeds["trainer"].append(theirs.round(asked.steps))
        say(f"round {number + 1}: ours {speeds['ours'][-1]:,.0f}, Trainer {speeds['trainer'][-1]:,.0f} real tokens/s")
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    ratios = [our / their for our, their in zip(speeds["ours"], speeds["trainer"], strict=True)]
    say(
        f"medians: ours {medians['ours']:,.0f}, Trainer {medians['trainer']:,.0f} real tokens/s; ratio "
        f"{medians['ours'] / medians['trainer']:.2f} (rounds {min(ratios):.2f} to {max(ratios):.2f})"
    )


class Ours:
    """The loop of `wenlei pretrain`, some steps at a time."""

    def __init__(self, model: Path, store: TokenStore, asked: argparse.Namespace) -> None:
        objective = continued_objective(Arch.BERT, model, model, attention=None, whole_words=False, next_sentence=False)
        assert isinstance(objective, BertObjective)
        options = Options(
            steps=10**9,
            batch_tokens=asked.batch_tokens,
            max_length=objective.model.config.max_position_embeddings,
            learning_rate=1e-4,
            warmup=1e-9,
            precision=asked.precision,
        )
        self.loop = Pretraining(
            objective=objective,
            windows=store,
            options=options,
            seed=1,
            checkpoint=asked.home / "no-checkpoint",
            curves=CurveFile(asked.home / "no-curves.jsonl"),
        )
        self.source = self.loop.steps()
        self.upcoming = next(self.source)

    def tokens_a_step(self) -> float:
        """Real tokens, in the mean of some batches."""
        return statistics.mean(upcoming.batches[0].tokens for upcoming in islice(self.loop.steps(), 50))

    def round(self, steps: int) -> float:
        """Real tokens a second."""
        for number in range(steps):
            if number == WARM:
                started, before = time.perf_counter(), self.loop.progress.tokens
            self.upcoming, _ = self.loop.update(self.upcoming, self.source, clock=0.0)
        return (self.loop.progress.tokens - before) / (time.perf_counter() - started)


class Theirs(TrainerCallback):  # type: ignore[misc]
    """transformers' Trainer on the same windows, as many real tokens a step."""

    def __init__(self, model: Path, store: TokenStore, asked: argparse.Namespace, *, tokens_a_step: float) -> None:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(model)
        self.model = BertForMaskedLM.from_pretrained(model)
        length = self.model.config.max_position_embeddings - 2
        frame = tokenizer.cls_token_id, tokenizer.sep_token_id
        batches = islice(store.batches("train", max_length=length, batch_tokens=8192, seed=2), 400)
        windows = [window for _, batch in batches for window in batch]
        self.rows = [{"input_ids": [frame[0], *window.ids.tolist(), frame[1]]} for window in windows]
        mean = statistics.mean(len(row["input_ids"]) for row in self.rows)
        self.batch_size = max(1, round(tokens_a_step / mean))
        self.described = (
            f"{tokens_a_step:,.0f} real tokens a step, {self.batch_size} texts of {mean:.0f} for the Trainer"
        )
        self.collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
        self.precision = pick_precision(asked.precision, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        self.home, self.seed = asked.home, 0
        self.steps, self.started, self.ended = 0, 0.0, 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock after the first steps."""
        if self.steps == WARM:
            self.started = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Count, and stop the clock."""
        self.steps += 1
        self.ended = time.perf_counter()

    def round(self, steps: int) -> float:
        """Real tokens a second."""
        self.seed += 1
        self.steps = 0
        counted: list[int] = []
        arguments = TrainingArguments(
            output_dir=str(self.home / "trainer"),
            per_device_train_batch_size=self.batch_size,
            max_steps=steps,
            learning_rate=1e-4,
            weight_decay=0.01,
            bf16=self.precision is NumberFormat.BF16,
            fp16=self.precision is NumberFormat.FP16,
            seed=self.seed,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=torch.cuda.is_available(),
        )
        trainer = Trainer(
            model=self.model,
            args=arguments,
            train_dataset=self.rows,
            data_collator=lambda rows: self._counting(rows, counted),
            callbacks=[self],
        )
        trainer.train()
        return sum(counted[WARM:steps]) / (self.ended - self.started)

    def _counting(self, rows: list[dict[str, Any]], counted: list[int]) -> dict[str, Any]:
        batch: dict[str, Any] = self.collator(rows)
        counted.append(int(batch["attention_mask"].sum()))
        return batch


def say(message: str) -> None:
    """A line, at once."""
    sys.stdout.write(message + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
