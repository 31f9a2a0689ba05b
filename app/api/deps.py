"""What routes are given: the database, the settings, and who asks."""

from typing import Annotated

import sqlalchemy as sa
from fastapi import Depends, Request

from app.api.middleware import IDENTITY
from app.people.keyring import Identity
from app.settings import Settings


def _database(request: Request) -> sa.Engine:
    engine: sa.Engine = request.app.state.engine
    return engine


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def _asker(request: Request) -> Identity:
    identity: Identity = request.scope[IDENTITY]
    return identity


Database = Annotated[sa.Engine, Depends(_database)]
ServerSettings = Annotated[Settings, Depends(_settings)]
Asker = Annotated[Identity, Depends(_asker)]
