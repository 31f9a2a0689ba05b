"""One finished run of each task, trained on made-up rows from the tiny BERT."""

from pathlib import Path

import pytest
from made_tasks import MAKERS, TASKS, Tuned, options, write_rows

from model.types import Split
from training.heads.tuning import finetune
from training.pretrained import Start, resolve


@pytest.fixture(scope="session")
def start(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Start:
    return resolve(str(tiny_bert), cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session", params=TASKS)
def tuned(request: pytest.FixtureRequest, start: Start, tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    """One of each task."""
    task, n_rows, epochs = TASKS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    files = {
        split: write_rows(folder / f"{split}.jsonl", MAKERS[request.param](n, seed=seed))
        for seed, (split, n) in enumerate(((Split.TRAIN, n_rows), (Split.DEV, 60), (Split.TEST, 60)))
    }
    asked = options(start.folder, epochs=epochs)
    run = finetune(task, files, start=start, options=asked, seed=1, out=folder / "run")
    return Tuned(run, files)
