"""Libraries that the doctor is shown, and their censuses."""

from typing import Any

from workshop import Workshop

from app.library.cataloguing import ensure_catalogue
from app.library.doctor.census import Taken, take_census
from app.store.database import connect, reading
from app.store.libraries import get_library
from model.near import NearSettings

# Some ways to say nothing in particular, each of its own words.
SENTENCES = (
    "房间宽敞明亮，早餐的豆浆很好喝",
    "前台小姑娘办理入住手脚麻利",
    "隔壁装修从清晨敲到深夜没法休息",
    "电梯等了十分钟，楼道灯也不亮",
    "离地铁口两百米，出门逛街方便",
    "毛巾发黄，浴缸边上有霉斑",
    "老板送了一盘水果，孩子很开心",
    "空调漏水把行李箱都弄湿了",
    "窗外就是湖，傍晚的景色让人难忘",
    "退押金拖了一周，电话没人接",
)


def census_of(workshop: Workshop, library: str = "default", near: float = 0.8, **given: Any) -> Taken:
    ensure_catalogue(workshop.engine, library)
    with connect(workshop.engine) as connection, reading(connection):
        return take_census(connection, get_library(connection, library), NearSettings(near), **given)


def rows(*cells: tuple[str, ...], header: str = "text,label") -> str:
    """A CSV file."""
    return "\n".join([header, *(",".join(row) for row in cells)]) + "\n"
