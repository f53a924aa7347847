"""A matcher replaces only the index that it was opened from or saved last."""

from __future__ import annotations

import os
import random
import shutil
import threading
from pathlib import Path

import pytest

from fencepost.engine import Matcher
from fencepost.errors import IndexingError
from tests.seeds import seeds


def made(*ids: str) -> Matcher:
    matcher = Matcher(space="planar")
    for id in ids:
        matcher.subscribe(id, "n > 0")
    return matcher


def test_the_second_of_two_that_opened_an_index_is_refused(tmp_path: Path) -> None:
    made("a").save(tmp_path)
    first, second = Matcher.open(tmp_path), Matcher.open(tmp_path)
    first.subscribe("first", "n > 0")
    second.subscribe("second", "n > 0")
    first.save(tmp_path)
    with pytest.raises(IndexingError, match=r"has changed since .*open it again.*overwrite=True"):
        second.save(tmp_path)
    assert Matcher.open(tmp_path).ids() == ["a", "first"]
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["manifest.json"]
    first.save(tmp_path)
    second.save(tmp_path, overwrite=True)
    assert Matcher.open(tmp_path).ids() == ["a", "second"]
    second.save(tmp_path)
    with pytest.raises(IndexingError, match="has changed"):
        first.save(tmp_path)


def test_a_matcher_that_never_saw_the_folder(tmp_path: Path) -> None:
    index = tmp_path / "index"
    made("a").save(index)
    other = made("b")
    other.save(tmp_path / "elsewhere")
    with pytest.raises(IndexingError, match=r"not opened from it.*overwrite=True"):
        other.save(index)
    copy = Path(shutil.copytree(index, tmp_path / "copy"))
    with pytest.raises(IndexingError, match="not opened from it"):
        Matcher.open(index).save(copy)
    (index / "manifest.json").write_text('{"format": 1}')
    with pytest.raises(IndexingError, match="not opened from it"):
        other.save(index)
    other.save(index, overwrite=True)
    assert Matcher.open(index).ids() == ["b"]


def test_new_empty_and_removed_folders(tmp_path: Path) -> None:
    matcher = made("a")
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty", "below/new", "new"):
        matcher.save(tmp_path / name)
    shutil.rmtree(tmp_path / "new")
    matcher.save(tmp_path / "new")
    assert Matcher.open(tmp_path / "new").ids() == ["a"]


def test_a_folder_by_several_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = made("a")
    matcher.save(tmp_path / "index")
    (tmp_path / "link").symlink_to(tmp_path / "index")
    matcher.save(tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    matcher.save("index")
    Matcher.open("link").save(tmp_path / "index")
    with pytest.raises(IndexingError, match="has changed"):
        matcher.save("link")


@pytest.mark.parametrize("seed", seeds(20, 4))
def test_random_histories(tmp_path: Path, seed: int) -> None:
    """The model knows the version in each folder, and the versions that each matcher holds."""
    rng = random.Random(seed)
    folders = [tmp_path / "a", tmp_path / "b"]
    matchers = [Matcher(space="planar") for _ in range(3)]
    known: list[dict[Path, int]] = [{} for _ in matchers]
    current: dict[Path, tuple[int, list[str]]] = {}
    for step in range(60):
        k, folder = rng.randrange(3), rng.choice(folders)
        matchers[k].subscribe(f"s{step}", "n > 0")
        overwrite = rng.random() < 0.15
        if folder in current and rng.random() < 0.4:
            matchers[k] = Matcher.open(folder)
            known[k] = {folder: current[folder][0]}
            assert matchers[k].ids() == current[folder][1]
            continue
        if folder in current and known[k].get(folder) != current[folder][0] and not overwrite:
            with pytest.raises(IndexingError, match="overwrite=True"):
                matchers[k].save(folder)
        else:
            matchers[k].save(folder, overwrite=overwrite)
            current[folder] = step, matchers[k].ids()
            known[k][folder] = step
        if folder in current:
            assert Matcher.open(folder).ids() == current[folder][1]


def test_no_update_of_many_threads_is_lost(tmp_path: Path) -> None:
    """Each thread opens, changes and saves, and starts again whenever it is refused."""
    made("first").save(tmp_path)
    errors: list[BaseException] = []

    def change(thread: int) -> None:
        try:
            for number in range(4):
                while True:
                    matcher = Matcher.open(tmp_path)
                    matcher.subscribe(f"{thread} {number}", "n > 0")
                    try:
                        matcher.save(tmp_path)
                    except IndexingError:
                        continue
                    break
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=change, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    expected = [f"{thread} {number}" for thread in range(4) for number in range(4)]
    assert Matcher.open(tmp_path).ids() == [*expected, "first"]
    assert len(os.listdir(tmp_path)) == 1 + len(Matcher.open(tmp_path).view().snapshot())
