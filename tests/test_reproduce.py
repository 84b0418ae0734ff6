"""``python -m reproduction`` as people run it: its output, its files and its errors."""

import json
import re
from dataclasses import replace
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
from command import NOT_A_TERMINAL, run
from sklearn.neural_network import MLPClassifier

from reproduction import diabetic_retinopathy, figures, resnet, rules, simulated, utkface
from reproduction.command import app
from reproduction.examples import held_out_examples
from reproduction.faces import load_utkface
from reproduction.held_out import read_split
from reproduction.images import ImageData
from reproduction.protocol import halves
from reproduction.run import Reproduction, reproduce
from reproduction.scores import Scores, read_scores, write_scores
from reproduction.simulated import network_scores

invoke = partial(run, app=app)
EXPERIMENTS = [module.EXPERIMENT for module in (simulated, utkface, diabetic_retinopathy)]


def drawn_scores(n_classes, n_rows=600, seed=0):
    """Scores of a model that errs more the further it looks."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    seen = y + rng.normal(0, 0.8, n_rows)
    logits = -((np.arange(n_classes) - seen[:, None]) ** 2) / 1.3
    return Scores([f"row_{i}" for i in range(n_rows)], y, logits.round(5), "", "")


@pytest.fixture(autouse=True, scope="module")
def quick_networks():
    """In the place of the networks for points in the plane and for images, of small images."""
    scores = replace(drawn_scores(10), key="simulated-trained", source="a network trained here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "network_scores", lambda X, y, seed: scores)
        patch.setattr(resnet, "resnet34", lambda n_classes: resnet.ResNet((1, 1, 1, 1), n_classes))
        patch.setattr(utkface, "_IMAGE_SIZE", 32)
        patch.setattr(diabetic_retinopathy, "_IMAGE_SIZE", 32)
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    paths = {}
    for experiment in EXPERIMENTS:
        paths[experiment.name] = folder / f"{experiment.name}.csv"
        write_scores(drawn_scores(len(experiment.classes)), paths[experiment.name])
    return paths


@pytest.fixture(scope="module")
def everything(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("all") / "new"
    arguments = [word for path in files.values() for word in ("--scores", path)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "save", lambda figure, path: path.touch())
        result = invoke("all", *arguments, "--trials", 3, "--random-state", 5, "--out", out)
    assert result.exit_code == 0, result.output
    return result.stdout, out


@pytest.fixture(scope="module")
def drawn(files, tmp_path_factory):
    """The folder of a run whose pictures are not just files."""
    out = tmp_path_factory.mktemp("drawn") / "new"
    result = invoke("simulated", "--scores", files["simulated"], "--trials", 3, "--out", out)
    assert result.exit_code == 0, result.output
    return out


def test_results_are_those_of_the_library(everything, files):
    _, out = everything
    document = json.loads((out / "reproduction.json").read_text())
    found = {r["source"]: r for r in document["reproductions"]}
    assert len(found) == 4
    for experiment in EXPERIMENTS:
        expected = reproduce(experiment, read_scores(files[experiment.name]), trials=3, seed=5)
        assert found[f"scores in {experiment.name}.csv"] == json.loads(json.dumps(expected.to_dict()))
    assert [r["experiment"] for r in document["reproductions"]] == [
        "simulated",
        "simulated",
        "utkface",
        "diabetic-retinopathy",
    ]
    assert str(out) not in document["command"]


def test_published_values_stand_beside_ours(everything):
    printed, out = everything
    document = json.loads((out / "reproduction.json").read_text())
    for result, part in zip(document["reproductions"], printed.split("Table ")[1:], strict=True):
        for cell in result["published"]:
            sign = f"{cell['difference']:+.4f}"
            row = rf"{cell['published']}0* +{cell['risk']:.4f} +{cell['risk_se']:.4f} +{re.escape(sign)}"
            assert re.search(row + ("" if cell["agrees"] else " +differs"), part)


def test_output_fits_80_columns(everything):
    lines = everything[0].splitlines()
    assert max(map(len, lines[:-2])) <= 80
    assert not any(line.endswith(" ") for line in lines)
    assert "reproduction.md" in lines[-2]
    assert "reproduction.json" in lines[-1]


def test_every_figure_is_there_as_png_and_svg(everything, drawn):
    keys = ["simulated", "simulated-trained", "utkface", "diabetic-retinopathy"]
    names = {f"{key}-{name}" for key in keys for name in ("sizes", "risks", "centroids", "classes")}
    written = {path.name for path in (everything[1] / "figures").iterdir()}
    assert written == {f"{n}.{kind}" for n in names | {"simulated-trained-data"} for kind in ("png", "svg")}
    for path in (drawn / "figures").iterdir():
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        else:
            ElementTree.parse(path)


def test_page_shows_every_picture_and_no_folder_of_this_machine(everything):
    _, out = everything
    page = (out / "reproduction.md").read_text()
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", page)
    assert len(shown) == 17
    assert all((out / path).is_file() for path in shown)
    assert str(out.parent) not in page
    assert "python -m reproduction all --scores simulated.csv" in page


def test_one_rule_and_no_pictures(files, tmp_path):
    result = invoke(
        *("utkface", "--scores", files["utkface"], "--growth", "frontier", "--trials", 1),
        *("--out", tmp_path / "out", "--json", tmp_path / "mine.json", "--no-pictures"),
    )
    assert result.exit_code == 0, result.output
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["reproduction.md"]
    [found] = json.loads((tmp_path / "mine.json").read_text())["reproductions"]
    assert {r["growth"] for r in found["results"]["softmax"]} == {"frontier"}
    assert "(frontier rule, min_shift scores)" in result.stdout


def test_simulated_needs_no_file(tmp_path):
    result = invoke("simulated", "--trials", 1, "--out", tmp_path, "--no-pictures")
    assert result.exit_code == 0, result.output
    assert "Simulated data: a network trained here" in result.stdout


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    from PIL import Image

    folder = tmp_path_factory.mktemp("UTKFace")
    rng = np.random.default_rng(0)
    for i, age in enumerate(rng.integers(1, 100, 40)):
        pixels = np.full((24, 24, 3), 2 * age, np.uint8) + rng.integers(50, size=(24, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{age}_0_0_{20170101 + i}.jpg")
    Image.fromarray(pixels).save(folder / "nameless.jpg")
    (folder / "7_0_0_20170101.jpg").write_bytes(b"no picture")
    return folder


@pytest.fixture(scope="module")
def trained(faces, tmp_path_factory):
    """A run that trains: what it printed, the folder it wrote, what the network was trained on."""
    out = tmp_path_factory.mktemp("trained")
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        fit, untrained = resnet.fit, resnet.untrained
        patch.setattr(resnet, "fit", lambda *args: seen.append(args[1:3]) or fit(*args))
        patch.setattr(resnet, "untrained", lambda *args: seen.append(args[:1]) or untrained(*args))
        result = invoke(
            *("utkface", "--images", faces, "--epochs", 1, "--trials", 1),
            *("--out", out, "--no-pictures"),
        )
    assert result.exit_code == 0, result.output
    return result.stdout, out, seen


def test_training_saves_scores_and_split_and_names_what_is_left_out(trained, faces):
    printed, out, _ = trained
    assert "40 images; left out: 1 misnamed (nameless.jpg), 1 unreadable (7_0_0_20170101.jpg)." in " ".join(
        printed.split()
    )
    assert "--trials 1 --epochs 1 " in (out / "reproduction.md").read_text()
    scores = read_scores(out / "scores" / "utkface.csv.gz")
    data = load_utkface(faces, 8)
    train, held = read_split(out / "scores" / "utkface-split.json", data.names)
    assert (len(train), len(held)) == (11, 29)
    assert list(scores.names) == [data.names[row] for row in held]
    assert scores.y.tolist() == data.y[held].tolist()
    accuracy = re.search(r"29 rows, accuracy (\d\.\d+), mean absolute error (\d+\.\d+) labels", printed)
    assert accuracy.groups() == (f"{scores.accuracy:.3f}", f"{scores.mean_absolute_error:.3f}")


def test_held_out_images_take_no_part_in_training(trained, faces):
    _, out, (for_normalisation, for_training) = trained
    data = load_utkface(faces, 32)
    train, held = read_split(out / "scores" / "utkface-split.json", data.names)
    assert np.array_equal(for_normalisation[0], data.images[train])
    assert np.array_equal(for_training[0], data.images[train])
    assert for_training[1].tolist() == data.y[train].tolist()
    assert not set(data.groups[train]) & set(data.groups[held])


def test_too_few_rows_are_noted_in_a_sentence(trained):
    printed = " ".join(trained[0].split())
    sentence = "Note: alpha=0.005 needs at least 199 calibration rows for a loss bounded by 1; got 14,"
    assert printed.count(sentence) == 1
    assert "Warning" not in printed


@pytest.mark.parametrize(
    ("module", "loader", "n_images", "n_held"),
    [
        (utkface, "load_utkface", 23_672, 17_000),
        (utkface, "load_utkface", 100, 72),
        (diabetic_retinopathy, "load_kaggle_retinopathy", 35_126, 19_000),
        (diabetic_retinopathy, "load_kaggle_retinopathy", 100, 55),
    ],
)
def test_as_many_images_are_held_out_as_in_the_paper(module, loader, n_images, n_held, monkeypatch):
    rows = np.arange(n_images)
    data = ImageData(np.zeros((n_images, 1, 1, 3), np.uint8), rows % 5, [*map(str, rows)], rows, [], {})
    monkeypatch.setattr(module, loader, lambda *args, **kwargs: data)
    split = module.split_images("somewhere")
    assert (len(split.train), len(split.held)) == (n_images - n_held, n_held)


def test_examples_are_of_the_test_half(faces):
    """With their own captions and intervals, and misses marked."""
    data = load_utkface(faces, 8)
    logits = np.random.default_rng(0).normal(size=(len(data), 20))
    result = Reproduction(
        utkface.EXPERIMENT,
        Scores(data.names, data.y, logits, "faces", "made up"),
        ["frontier"],
        *(1, 0, {}, {}, [], []),
    )
    examples = held_out_examples(result, data)
    _, test = halves(len(data))
    of_test = [data.images[row].tobytes() for row in test]
    for image, caption, truth in zip(examples.images, examples.captions, examples.truths, strict=True):
        row = next(i for i in range(len(data)) if data.images[i].tobytes() == image.tobytes())
        assert image.tobytes() in of_test
        assert caption == data.captions[row]
        assert truth == f"class {data.y[row]}: {utkface.EXPERIMENT.classes[data.y[row]]}"


def test_saved_scores_need_no_training_and_show_examples(trained, faces, tmp_path, monkeypatch):
    _, out, _ = trained
    monkeypatch.setattr("reproduction.image_scores.train_and_score", None)
    result = invoke(
        *("utkface", "--images", faces, "--scores", out / "scores" / "utkface.csv.gz"),
        *("--trials", 1, "--out", tmp_path),
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figures" / "utkface-examples.png").is_file()
    assert "utkface-examples.png" in (tmp_path / "reproduction.md").read_text()
    before = json.loads((out / "reproduction.json").read_text())["reproductions"][0]
    after = json.loads((tmp_path / "reproduction.json").read_text())["reproductions"][0]
    assert after["results"] == before["results"]


def test_kaggle_folder_and_retinamnist_train_too(tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    folder = tmp_path / "kaggle"
    (folder / "train").mkdir(parents=True)
    lines = ["image,level"]
    for patient in range(20):
        for eye in ("left", "right"):
            lines.append(f"{patient}_{eye},{patient % 5}")
            image = rng.integers(256, size=(16, 20, 3), dtype=np.uint8)
            Image.fromarray(image).save(folder / "train" / f"{patient}_{eye}.jpeg")
    (folder / "trainLabels.csv").write_text("\n".join(lines))
    parts = {"train": 20, "val": 6, "test": 14}
    arrays = {f"{k}_images": rng.integers(256, size=(n, 28, 28, 3), dtype=np.uint8) for k, n in parts.items()}
    arrays |= {f"{k}_labels": rng.integers(5, size=(n, 1), dtype=np.uint8) for k, n in parts.items()}
    np.savez(tmp_path / "retinamnist.npz", **arrays)
    result = invoke(
        *("diabetic-retinopathy", "--images", folder, "--epochs", 1, "--trials", 1),
        *("--images", tmp_path / "retinamnist.npz", "--out", tmp_path / "out", "--no-pictures"),
    )
    assert result.exit_code == 0, result.output
    eyes = read_scores(tmp_path / "out" / "scores" / "retinopathy.csv.gz").names
    assert len(eyes) == 22
    assert {name.replace("left", "right") for name in eyes} == {name for name in eyes if "right" in name}
    retinas = read_scores(tmp_path / "out" / "scores" / "retinamnist.csv.gz").names
    assert [name.split("_")[0] for name in retinas] == ["val"] * 6 + ["test"] * 14


def spoilt(tmp_path, change):
    path = tmp_path / "spoilt.csv"
    write_scores(drawn_scores(5, 20), path)
    path.write_text(change(path.read_text()))
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "spoilt.csv is empty."),
        (
            lambda text: text.replace("logit_0", "z"),
            "spoilt.csv has an unknown layout: its header is 'name,label,z,logit_1,",
        ),
        (
            lambda text: re.sub(r"(?m)^(row_3,\d),[^,]+", r"\1,nan", text),
            "Line 5 of spoilt.csv has the logit nan for class 0; logits must be finite.",
        ),
    ],
    ids=["empty", "layout", "nan"],
)
def test_spoilt_scores_get_one_sentence(tmp_path, change, message):
    result = invoke(
        *(
            "diabetic-retinopathy",
            "--scores",
            spoilt(tmp_path, change),
            "--out",
            tmp_path / "out",
        )
    )
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1


def test_bad_requests_get_one_sentence(files, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    same = tmp_path / files["utkface"].name
    same.write_bytes(files["utkface"].read_bytes())
    reserved, constant = tmp_path / "simulated-trained.csv", tmp_path / "constant.csv"
    reserved.write_bytes(files["simulated"].read_bytes())
    flat = drawn_scores(10)
    flat.logits[7] = 1
    write_scores(flat, constant)
    out = ("--out", tmp_path / "out")
    for arguments, message in [
        (["utkface", "--scores", tmp_path / "no.csv"], "There is no file of scores at"),
        (["utkface", "--images", tmp_path / "no"], "is not there; give the folder or the zip file"),
        (["utkface", "--images", empty], "has no image of known age: of 0 files, none is named"),
        (["diabetic-retinopathy", "--images", empty], "trainLabels.csv is not there"),
        (["utkface"], "utkface needs --scores FILE or --images PATH: docs/scores/utkface.csv.gz"),
        (["all"], "utkface and diabetic-retinopathy need --scores FILE or --images PATH"),
        (["diabetic-retinopathy"], "github.com/yx8njit/ordinal-conformal-risk-control."),
        (
            ["utkface", "--scores", files["simulated"]],
            "utkface has 20 classes; got scores in simulated.csv with 10 classes.",
        ),
        (
            ["utkface", "--scores", same, "--scores", files["utkface"]],
            "more than one file is called utkface; rename one.",
        ),
        (["simulated", "--images", empty], "--images: the simulated experiment has no images."),
        (
            ["simulated", "--growth", "best"],
            "--growth: 'best' is not known; the rules are frontier,",
        ),
        (["simulated", "--growth", "rps", "--growth", "rps"], "--growth: each rule at most once."),
        (["simulated", "--trials", 0], "--trials must be at least 1; got 0."),
        (["utkface", "--images", empty, "--epochs", 0], "--epochs must be at least 1; got 0."),
        (["utkface", "--epochs", 3], "--epochs: there is nothing to train on without --images."),
        (["simulated", "--scores", reserved], "rename simulated-trained; figures of models trained here"),
        (["simulated", "--scores", constant], "scores in constant.csv: min_shift is not defined for row 7"),
        (["simulated", "--json", empty], "is a folder, not a file."),
        (["simulated", "--json", tmp_path / "none" / "x.json"], "--json: there is no folder"),
    ]:
        result = invoke(*arguments, *out)
        assert (result.exit_code, result.stdout) == (2, ""), arguments
        assert message in result.stderr
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1


def test_the_command_is_told_in_full(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spaced = tmp_path / "my grades.csv"
    spaced.write_bytes(files["diabetic-retinopathy"].read_bytes())
    result = invoke(
        *("diabetic-retinopathy", "--scores", "my grades.csv", "--growth", "rps", "--trials", 2),
        *("--random-state", 3, "--out", "here", "--no-pictures"),
    )
    assert result.exit_code == 0, result.output
    page = (tmp_path / "here" / "reproduction.md").read_text()
    assert (
        "    python -m reproduction diabetic-retinopathy --scores 'my grades.csv' --growth rps --trials 2 "
        "--random-state 3 --out here\n"
    ) in page


def test_bars_are_for_terminals_and_on_standard_error(files, tmp_path):
    arguments = (
        *("utkface", "--scores", files["utkface"], "--growth", "paper", "--trials", 1),
        *("--out", tmp_path, "--no-pictures"),
    )
    assert invoke(*arguments).stderr == ""
    terminal = invoke(*arguments, env=NOT_A_TERMINAL | {"FORCE_COLOR": "1"})
    for bar in ("table, min_shift", "set sizes, softmax", "realised risks", "centroids"):
        assert f"Age recognition: {bar}" in terminal.stderr
        assert f"Age recognition: {bar}" not in terminal.stdout


def test_the_page_links_to_how_scores_were_made(files, tmp_path):
    folder = tmp_path / "scores"
    folder.mkdir()
    mine = folder / "mine.csv"
    mine.write_bytes(files["utkface"].read_bytes())
    (folder / "README.md").write_text("By hand.")
    elsewhere = tmp_path / "elsewhere"
    for out, linked in ((tmp_path, True), (elsewhere, False)):
        result = invoke(
            *("utkface", "--scores", mine, "--trials", 1, "--growth", "paper"),
            *("--out", out, "--no-pictures"),
        )
        assert result.exit_code == 0, result.output
        page = (out / "reproduction.md").read_text()
        assert ("[How the scores were made](scores/README.md)" in page) == linked


def test_an_interrupt_is_said_and_ends_the_run(tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulated, "network_scores", interrupted)
    for command, *which in ((app, "simulated"), (rules.app,)):
        result = invoke(*which, "--out", tmp_path, app=command)
        assert (result.exit_code, result.stderr) == (
            130,
            "Error: interrupted; files that were written are whole.\n",
        )


def test_an_interrupted_network_is_not_used(monkeypatch):
    points = np.zeros((40, 2)), np.arange(40) % 4

    def interrupt(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(MLPClassifier, "_backprop", interrupt)
    with pytest.raises(KeyboardInterrupt):
        network_scores(*points)


def test_help_has_examples_and_fits():
    result = invoke("--help")
    assert result.exit_code == 0
    assert "python -m reproduction utkface --images UTKFace.zip" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
