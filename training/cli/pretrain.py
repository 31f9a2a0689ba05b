"""`wenlei pretrain`: language models on plain text, new ones or ones that are trained already."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from model.console import JsonFlag, emit
from model.errors import BadInput
from training.cli.common import HomeOption, SeedOption, choice, start_torch

if TYPE_CHECKING:
    from training.pretrain.configs import Arch
    from training.pretrain.pretrain import Plan
    from training.pretrain.run import PretrainRun
    from training.pretrained import Start

LENGTH = "长度 | how long"
MODEL = "模型 | the model"
STEP = "每一步 | a step"
MAX_LENGTH, MAX_WORDS = 128, 64  # of continued pretraining, unless one says otherwise


def pretrain(
    arch: Annotated[str, typer.Option(help="elmo、gpt、bert 或 nezha | elmo, gpt, bert or nezha")],
    corpus: Annotated[
        list[Path],
        typer.Option(
            help="语料：文本、.xz、.gz 或快照文件夹，可多次给出 | text files, .xz, .gz or snapshots; may be given again"
        ),
    ],
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="更多语料 | more of the corpus")
    ] = None,
    documents: Annotated[
        str,
        typer.Option(
            help="一篇到哪里为止：auto、blank-lines（空行）、lines（每行一篇）或 running（连续的文章，空行不算）"
            "| where a document ends: auto, blank-lines, lines (each is one) or running (blank lines mean nothing)"
        ),
    ] = "auto",
    steps: Annotated[int | None, typer.Option(min=0, help="训练步数 | steps", rich_help_panel=LENGTH)] = None,
    minutes: Annotated[float | None, typer.Option(help="训练分钟数 | minutes", rich_help_panel=LENGTH)] = None,
    config: Annotated[
        str | None,
        typer.Option(
            help="small、base 或 JSON 文件，默认 small | small, base or a JSON file; small by default",
            rich_help_panel=MODEL,
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            help="继续预训练的起点：文件夹、hub 上的模型名、offline 或另一次预训练 | a start to go on with: a folder, "
            "a hub id, offline or another pretraining",
            rich_help_panel=MODEL,
        ),
    ] = None,
    vocab: Annotated[
        Path | None,
        typer.Option(
            help="现成的 vocab.txt；默认从语料训练 | a vocab.txt; by default made from the corpus",
            rich_help_panel=MODEL,
        ),
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(
            help="gpt：full 或 memory-compressed（长文本）| of gpt: full or memory-compressed, for long texts",
            rich_help_panel=MODEL,
        ),
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=8, help="一段文本的词元数上限 | tokens a text at most", rich_help_panel=STEP)
    ] = None,
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            min=8,
            help="一批的词元数，含填充；small 默认 2,048，其余 8,192 | "
            "tokens a batch, padding included; 2,048 of small, else 8,192",
            rich_help_panel=STEP,
        ),
    ] = None,
    accumulate: Annotated[int, typer.Option(min=1, help="每步几批 | batches a step", rich_help_panel=STEP)] = 1,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="默认随架构、大小和优化器 | by default by architecture, size and optimizer",
            rich_help_panel=STEP,
        ),
    ] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(
            help="adamw 或 lamb；nezha 默认 lamb | adamw or lamb; lamb by default for nezha", rich_help_panel=STEP
        ),
    ] = None,
    decay: Annotated[
        str | None,
        typer.Option(
            help="学习率下降：linear 或 cosine；gpt 默认 cosine | linear or cosine; cosine by default for gpt",
            rich_help_panel=STEP,
        ),
    ] = None,
    precision: Annotated[
        str, typer.Option(help="auto、fp32、bf16 或 fp16 | auto, fp32, bf16 or fp16", rich_help_panel=STEP)
    ] = "auto",
    checkpoint_activations: Annotated[
        bool,
        typer.Option("--checkpoint-activations", help="用时间换内存 | less memory, more time", rich_help_panel=STEP),
    ] = False,
    whole_words: Annotated[
        bool | None,
        typer.Option(
            help="按词掩码；nezha 默认如此 | bert, nezha: mask whole words; so by default for nezha",
            rich_help_panel=MODEL,
        ),
    ] = None,
    next_sentence: Annotated[
        bool | None,
        typer.Option(
            help="下一句预测，bert 与 nezha 默认如此 | bert, nezha: predict next sentences; so by default",
            rich_help_panel=MODEL,
        ),
    ] = None,
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option(help="预训练记录文件夹 | folder of the run")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="必须已有可继续的训练 | there has to be a training to go on with"),
    ] = False,
    home: HomeOption = Path("var"),
    json: JsonFlag = False,
) -> None:
    """用纯文本预训练语言模型，或继续预训练；中断后用同样的命令继续。| Pretrain on plain text; the same command resumes.

    从头开始，或用自己的文本继续训练一个起点。A language model from nothing, or on from a start, on your own texts.

    例 Example:  wenlei pretrain --arch bert --corpus 语料.txt.xz --minutes 30 --out var/runs/my-bert

    例 Example:  wenlei pretrain --arch bert --init hfl/rbt3 --corpus 我的文本.txt --steps 2000 --out var/runs/rbt3-mine

    例 Example:  wenlei train --init var/runs/my-bert --snapshot var/snapshots/default/HASH
    """
    start_torch()
    from training.pretrain.configs import Arch, Attention, habits, read_size
    from training.pretrain.corpus import Layout
    from training.pretrain.options import Decay, Optimizer, Options
    from training.pretrain.pretrain import Plan
    from training.pretrain.pretrain import pretrain as run_plan
    from training.pretrained import resolve

    chosen_arch = choice(Arch, arch, "--arch")
    _refuse_meaningless(
        chosen_arch,
        {
            "--whole-words": whole_words,
            "--next-sentence": next_sentence,
            "--attention": attention,
            "--vocab": vocab,
        },
        continued=init is not None,
        config=config,
    )
    start = resolve(init, cache=home / "pretrained") if init is not None else None
    size = None if start else read_size(chosen_arch, config or "small")
    if size:
        length = max_length or size.max_length
        size = replace(size, max_length=max(length, size.max_length))  # positions for all of a text
    elif start:
        length = _length(chosen_arch, max_length, start, init)
    chosen_optimizer = choice(Optimizer, optimizer, "--optimizer") if optimizer else None
    usual = habits(
        chosen_arch, config or "small", start=start.model_type if start else None, optimizer=chosen_optimizer
    )
    options = Options(
        steps=steps,
        minutes=minutes,
        batch_tokens=batch_tokens or usual.batch_tokens,
        accumulate=accumulate,
        max_length=length,
        learning_rate=usual.learning_rate if learning_rate is None else learning_rate,
        optimizer=usual.optimizer,
        decay=choice(Decay, decay, "--decay") if decay else usual.decay,
        precision=_precision(precision),
    )
    plan = Plan(
        arch=chosen_arch,
        corpus=(*corpus, *(more or ())),
        layout=choice(Layout, documents, "--documents"),
        size=size,
        start=start,
        vocab=vocab,
        options=options,
        seed=seed,
        whole_words=usual.whole_words if whole_words is None else whole_words,
        next_sentence=usual.next_sentence if next_sentence is None else next_sentence,
        checkpoint_activations=checkpoint_activations,
        attention=choice(Attention, attention, "--attention") if attention else None,
    )
    run = run_plan(plan, out=out or _default_out(home, plan), resume=resume)
    if _is_first():
        result = {"run": str(run.path), "figures": run.figures}
        emit(result, as_json=json, render=lambda console: _show(console, run))


def _refuse_meaningless(arch: "Arch", given: dict[str, Any], *, continued: bool, config: str | None) -> None:
    """Refuse options that nothing would come of.

    Raises:
        BadInput: one of them was given.
    """
    meaning = {
        "--whole-words": ("bert", "nezha"),
        "--next-sentence": ("bert", "nezha"),
        "--attention": ("gpt",),
        "--vocab": ("bert", "nezha", "gpt"),
    }
    for option, value in given.items():
        if value is not None and arch.value not in meaning[option]:
            raise BadInput(f"{option} has no meaning with --arch {arch.value}; leave it out")
    if continued and (
        taken := [name for name, value in {"--config": config, "--vocab": given["--vocab"]}.items() if value]
    ):
        raise BadInput(f"{taken[0]} has no meaning with --init, whose size and vocabulary are kept; leave it out")


def _length(arch: "Arch", asked: int | None, start: "Start", init: str | None) -> int:
    """Tokens a text at most, for a start.

    Raises:
        BadInput: more than the model has positions for, or it is of another architecture.
    """
    from training.pretrain.starting import positions

    limit = positions(start.folder, init=init or "", arch=arch)
    if asked is not None and limit is not None and asked > limit:
        raise BadInput(
            f"--max-length {asked} is more than the {limit} positions of --init {init}; give at most that many"
        )
    usual = MAX_WORDS if arch.value == "elmo" else MAX_LENGTH
    return asked or min(limit or usual, usual)


def _precision(value: str) -> Any:
    from training.device import NumberFormat

    return choice(NumberFormat, value, "--precision")


def _default_out(home: Path, plan: "Plan") -> Path:
    on = f"-{plan.start.name}" if plan.start else ""
    return home / "runs" / f"pretrain-{plan.arch.value}{on}-seed{plan.seed}"


def _is_first() -> bool:
    """Whether this process speaks for all that torchrun started."""
    import torch.distributed as dist

    return not dist.is_torchelastic_launched() or dist.get_node_local_rank(fallback_rank=0) == 0


def _show(console: Console, run: "PretrainRun") -> None:
    """The figures, then where the start lies, which the next command asks for."""
    table = Table("指标 figure", "值 value")
    for name, value in run.figures.items():
        if not isinstance(value, dict):
            table.add_row(name.replace("_", " "), f"{value:,.4f}" if name.startswith("bits") else f"{value:,}")
    console.print(table)
    console.print(f"曲线 curves  {run.path / 'curves.svg'}", soft_wrap=True, markup=False, highlight=False)
    console.print(f"预训练记录 run  {run.path}", soft_wrap=True, markup=False, highlight=False)
    command = f"wenlei train --arch {run.arch} --init {run.path} --snapshot …"
    console.print(f"下一步 next  {command}", soft_wrap=True, markup=False, highlight=False)
