"""One pretraining, from text files to a start: vocabulary, tokens, training, and the run that tells of it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from model.console import say
from model.errors import BadInput, BadRun
from model.files import flush, only_process, publish, sha256_file, staging_folder
from model.tokenization import gpt_frame
from training.pretrain.bert_objective import BertObjective
from training.pretrain.configs import Arch, Attention, ElmoSize, Size
from training.pretrain.corpus import Corpus, Layout
from training.pretrain.curves import CurveFile, draw
from training.pretrain.loop import Pretraining
from training.pretrain.memory import check_memory
from training.pretrain.objectives import Objective
from training.pretrain.options import Options
from training.pretrain.prepare import prepare
from training.pretrain.processes import Processes, join_processes
from training.pretrain.run import PretrainRun
from training.pretrain.starting import check_vocabulary, checkpoint_activations, continued_objective, new_objective
from training.pretrain.store import TokenStore
from training.pretrain.survey import Survey, survey
from training.pretrain.vocabulary import read_vocabulary, take_tokenizer, take_vocabulary, train_wordpiece, train_words
from training.pretrained import Start

SURVEY_SEED = 0  # of which documents are held out: of every run the same, so that runs compare and none has seen them


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked for. start: weights to go on with; without one, a new model of `size`.

    layout: how the text files of the corpus say where a document ends. vocab: a vocab.txt, in place of a vocabulary
    made from the corpus. attention: of a GPT; None leaves a start's.
    """

    arch: Arch
    corpus: tuple[Path, ...]
    layout: Layout = Layout.AUTO
    size: Size | None
    start: Start | None
    vocab: Path | None
    options: Options
    seed: int
    whole_words: bool = False
    next_sentence: bool = False
    checkpoint_activations: bool = False
    attention: Attention | None = None

    def config(self) -> dict[str, Any]:
        """All that was chosen, for `pretrain.json`; how often to checkpoint is no matter of what comes out."""
        options = {name: value for name, value in asdict(self.options).items() if name != "checkpoint_seconds"}
        chosen = {
            "size": asdict(self.size) if self.size else None,
            "vocab": sha256_file(self.vocab) if self.vocab else None,
            "whole_words": self.whole_words,
            "next_sentence": self.next_sentence,
            "checkpoint_activations": self.checkpoint_activations,
            "attention": self.attention.value if self.attention else None,
        }
        return {**chosen, **options}


def pretrain(plan: Plan, *, out: Path, resume: bool = False) -> PretrainRun:
    """Pretrain as planned, into `out`; what was broken off there goes on. resume: there has to be something.

    Raises:
        BadInput: the corpus, the vocabulary or the start can't be used, or a batch won't fit into memory.
        BadRun: `out` holds another run, or a finished one, or none although `resume` asks for it.
        Diverged: a loss stopped being a number.
    """
    if plan.checkpoint_activations and plan.arch is Arch.ELMO:
        raise BadInput(
            "--checkpoint-activations has no meaning with --arch elmo: an LSTM's way back needs every state in order; "
            "make --batch-tokens smaller instead, and --accumulate larger"
        )
    if out.exists() and not out.is_dir():
        raise BadRun(f"{out} is a file; give another --out")
    with join_processes() as processes, _alone(out, processes):
        prepared = processes.first(lambda: _prepared(plan, out, resume=resume, world=processes.world))
        run = prepared or PretrainRun.open(out, finished=False)  # as the first one has just left it
        if run.status == "done":
            if processes.is_first:
                say(f"{out} 已经完成 | {out} is finished already")
            return run
        windows = TokenStore.open(run.tokens_path, tokenizer=run.model_path)
        objective = _objective(plan, run.model_path)
        if isinstance(objective, BertObjective) and not plan.start:
            objective.begin_at(windows.frequencies(objective.tokens.size))
        loop = Pretraining(
            objective=objective,
            windows=windows,
            options=plan.options,
            seed=plan.seed,
            checkpoint=run.checkpoint_path,
            curves=CurveFile(run.curves_path),
            processes=processes,
        )
        progress = loop.run()
        if processes.is_first:
            run = _finished(run, loop.objective, loop)
            say(f"{progress.step:,} 步，{progress.tokens:,} 词元 | {progress.step:,} steps, {progress.tokens:,} tokens")
        processes.wait()
        return run


@contextmanager
def _alone(out: Path, processes: Processes) -> Iterator[None]:
    """Keep other commands out of the folder; the processes of this one share it."""
    if processes.is_first:
        with only_process(out):
            yield
    else:
        yield


def _asked(plan: Plan, corpus: Corpus, out: Path) -> PretrainRun:
    start = {"name": plan.start.name, "sha256": plan.start.sha256} if plan.start else None
    return PretrainRun(
        path=out,
        arch=plan.arch.value,
        config=plan.config(),
        seed=plan.seed,
        corpus=corpus.to_json(),
        start=start,
    )


def _prepared(plan: Plan, out: Path, *, resume: bool, world: int) -> PretrainRun:
    """The run with its tokenizer and its tokens, made where they are not there yet."""
    if resume and not (out / "pretrain.json").exists():
        raise BadRun(f"--resume: {out} holds no pretraining to go on with; leave --resume out to begin one")
    # Before anything is written: whether start and vocabulary can be used, a batch fits, and the corpus can be read.
    if plan.vocab:
        read_vocabulary(plan.vocab)
    check_memory(_objective(plan, None), plan.options, world=world)
    corpus = Corpus.open(plan.corpus, layout=plan.layout)
    found = None if (out / "pretrain.json").exists() else survey(corpus, seed=SURVEY_SEED)
    run = _asked(plan, corpus, out).begin()
    if run.status == "done":
        if not resume:
            raise BadRun(f"{out} holds a finished pretraining; give another --out, or take it with --init {out}")
        return run
    if not (run.tokens_path / "manifest.json").exists():
        found = found or survey(corpus, seed=SURVEY_SEED)
        if not (run.model_path / "tokenizer.json").exists():
            with staging_folder(run.model_path) as staging:
                made = _make_tokenizer(plan, corpus, found, staging)
                publish(staging, run.model_path)
            run = run.changed(tokenizer={**made, "sha256": sha256_file(run.model_path / "tokenizer.json")})
        check_vocabulary(run.model_path, arch=plan.arch)
        if not run.tokenizer:  # a process that was killed had no time to write of it
            run = run.changed(tokenizer={"sha256": sha256_file(run.model_path / "tokenizer.json")})
        prepare(corpus, found, tokenizer=run.model_path, folder=run.tokens_path, words=plan.whole_words)
    return run


def _make_tokenizer(plan: Plan, corpus: Corpus, found: Survey, folder: Path) -> dict[str, Any]:
    """Fill `folder` with the tokenizer: the start's, that of the given vocabulary, or one made from the corpus."""
    if plan.start:
        return take_tokenizer(plan.start.folder, folder)
    if plan.size is None:
        raise ValueError("a plan without a start has a size")
    if isinstance(plan.size, ElmoSize):
        return train_words(
            corpus, found, n_words=plan.size.vocabulary, n_characters=plan.size.characters, folder=folder
        )
    if plan.vocab:
        made = take_vocabulary(plan.vocab, folder)
    else:
        made = train_wordpiece(corpus, found, size=plan.size.vocabulary, folder=folder)
    if plan.arch is Arch.GPT:
        gpt_frame.load_for_pretraining(folder, max_length=plan.options.max_length).save(folder)
    return made


def _objective(plan: Plan, tokenizer: Path | None) -> Objective:
    """The model that training begins with, and its task. tokenizer: its folder; None tries a new model out.

    Raises:
        BadInput: the start's weights or vocabulary can't be used.
    """
    torch.manual_seed(plan.seed)
    common = {"whole_words": plan.whole_words, "next_sentence": plan.next_sentence}
    if plan.start:
        objective = continued_objective(
            plan.arch, plan.start.folder, tokenizer or plan.start.folder, attention=plan.attention, **common
        )
    elif plan.size:
        attention = plan.attention or Attention.FULL
        objective = new_objective(plan.arch, plan.size, tokenizer, attention=attention, **common)
    if plan.checkpoint_activations:
        checkpoint_activations(objective.model)
    return objective


def _finished(run: PretrainRun, objective: Objective, loop: Pretraining) -> PretrainRun:
    """Write the start, the curves and the figures."""
    progress = loop.progress
    with staging_folder(run.model_path) as staging:
        objective.save(staging)
        for path in sorted(staging.iterdir()):
            path.chmod(0o644)
            flush(path)
            path.replace(run.model_path / path.name)
    n_parameters = sum(parameter.numel() for parameter in objective.model.parameters())
    figures = {
        objective.figure: progress.held_out[objective.figure],
        "held_out": progress.held_out,
        "steps": progress.step,
        "tokens": progress.tokens,
        "tokens_per_second": round(progress.tokens / progress.busy) if progress.busy else 0,
        "seconds": round(progress.seconds, 1),
        "parameters": n_parameters,
    }
    history = loop.curves.points
    title = f"{run.path.name}: {run.arch}, {n_parameters / 1e6:.1f} M"
    (run.path / "curves.svg").write_text(draw(history, title=title, figure=objective.figure), encoding="utf-8")
    environment = {
        **run.environment,
        "device": progress.device,
        "precision": progress.precision,
        "processes": loop.processes.world,
        "threads": torch.get_num_threads(),
    }
    done = run.finish(figures=figures, history=history, environment=environment)
    shutil.rmtree(run.checkpoint_path, ignore_errors=True)
    return done
