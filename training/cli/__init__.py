"""The commands of training: `wenlei train`, `wenlei distill`, `wenlei baselines`, `wenlei compare`, `wenlei evaluate`,
`wenlei export`, `wenlei finetune`, `wenlei pretrain`.

Importing them is cheap: torch is imported when a command runs, so that `wenlei --help` stays quick and works
where the training extra is not installed.
"""

import typer

from training.cli.baselines import baselines
from training.cli.compare import compare
from training.cli.distill import distill
from training.cli.evaluate import evaluate
from training.cli.export import export
from training.cli.finetune import app as finetune
from training.cli.pretrain import pretrain
from training.cli.train import train

app = typer.Typer(no_args_is_help=True)

for command in (train, distill, baselines, compare, evaluate, export, pretrain):
    app.command()(command)
app.add_typer(finetune, name="finetune")
