"""Settings: where things are kept by default, which URLs are taken, and that secrets stay secret."""

from pathlib import Path

import pytest

from app.settings import Settings, load_settings
from model.errors import BadInput


def test_the_database_lies_in_the_home_folder_unless_a_url_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENLEI_HOME", "/data/wenlei")
    monkeypatch.setenv("WENLEI_DATABASE_URL", "")
    assert load_settings().database_url.get_secret_value() == "sqlite:////data/wenlei/wenlei.db"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_is_reached_through_the_driver_that_is_shipped(scheme: str) -> None:
    settings = Settings(database_url=f"{scheme}://li:geheim@host/db")
    assert settings.database_url.get_secret_value() == "postgresql+psycopg://li:geheim@host/db"
    assert "geheim" not in f"{settings!r} {settings}"


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().home = Path("elsewhere")


def test_a_bad_variable_is_named_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENLEI_PORT", "geheim")
    with pytest.raises(BadInput, match="WENLEI_PORT") as refused:
        load_settings()
    assert "geheim" not in str(refused.value)
