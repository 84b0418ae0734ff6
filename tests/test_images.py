"""Loaders of image sets: images that they read, skip with a warning, or refuse."""

import io
import os
import sys
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from reproduction.faces import AGE_GROUPS, load_utkface
from reproduction.held_out import read_split
from reproduction.images import ImageData, ImageFile, decode_files, groups_of_copies
from reproduction.retinopathy import GRADES, load_kaggle_retinopathy, load_retinamnist
from reproduction.scores import read_scores

Image = pytest.importorskip("PIL.Image", reason="Pillow is absent; it comes with the extra vision")

DATA = Path(os.environ.get("ORDINALRISK_DATA", Path(__file__).parents[2] / "shared" / "data"))
needs_utkface = pytest.mark.skipif(
    not (DATA / "utkface64.zip").is_file(),
    reason="utkface64.zip is absent; name its folder in ORDINALRISK_DATA",
)
needs_retinamnist = pytest.mark.skipif(
    not (DATA / "retinamnist.npz").is_file(),
    reason="retinamnist.npz is absent; name its folder in ORDINALRISK_DATA",
)

RED, GREEN, BLUE, GREY = (200, 30, 30), (30, 200, 30), (30, 30, 200), (120, 120, 120)


def encoded(colour, size=(20, 20), form="JPEG"):
    stream = io.BytesIO()
    Image.new("RGB", size, colour).save(stream, form, quality=95)
    return stream.getvalue()


def folder_of(files, folder):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def zip_of(files, path, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def colours(images):
    """The colour of the middle of each image, in words."""
    names = {"red": RED, "green": GREEN, "blue": BLUE, "grey": GREY}
    middle = images[:, images.shape[1] // 2, images.shape[2] // 2].astype(int)
    return [min(names, key=lambda name: np.abs(pixel - names[name]).sum()) for pixel in middle]


FACES = {
    "faces/b/8_1_0_20170112213500903.jpg.chip.jpg": encoded(RED),
    "faces/a/99_0_4_20170112213500904.JPEG": encoded(GREEN, (31, 17)),
    "faces/a/25_1_2_201701 .png": encoded(BLUE, form="PNG"),
    "faces/c/26_1_2_2017jpg.chip.jpg": encoded(RED),
    "faces/a/100_1_2_20170112213500905.jpg": encoded(GREY),
    "faces/a/116_1_2_20170112213500906.jpg": encoded(GREY),
    "faces/a/39_1_20170116174525125.jpg.chip.jpg": encoded(GREY),
    "faces/a/30_2_0_20170116174525125.jpg": encoded(GREY),
    "faces/a/30_1_5_20170116174525125.jpg": encoded(GREY),
    "faces/a/holiday.png": encoded(GREY, form="PNG"),
    "faces/a/30_1_1_20170116174525125.jpg": encoded(GREY)[:-300],
    "faces/a/31_1_1_20170116174525125.jpg": b"no image",
    "faces/a/32_1_1_20170116174525125.jpg": b"",
    "faces/README.txt": b"hello",
    "faces/a/._8_1_0_20170112213500903.jpg": b"fork",
    "__MACOSX/faces/9_1_0_20170112213500903.jpg": encoded(GREY),
}


@pytest.fixture(params=["folder", "zip"])
def faces(request, tmp_path):
    if request.param == "folder":
        return load_utkface(folder_of(FACES, tmp_path), 16)
    return load_utkface(zip_of(FACES, tmp_path / "faces.zip"), 16)


def test_faces_are_in_the_order_of_their_names_whatever_their_folders(faces):
    assert colours(faces.images) == ["blue", "red", "red", "green"]
    assert faces.captions == ["age 25", "age 26", "age 8", "age 99"]
    assert faces.images.shape == (4, 16, 16, 3)
    assert faces.images.dtype == np.uint8


def test_label_is_the_group_of_five_years(faces):
    assert [AGE_GROUPS[label] for label in faces.y] == ["25-29", "25-29", "5-9", "95-99"]
    assert faces.y.dtype == np.int64


def test_every_face_left_out_is_named_with_its_reason(faces):
    assert faces.skipped == {
        "aged 100 or more": ["100_1_2_20170112213500905.jpg", "116_1_2_20170112213500906.jpg"],
        "misnamed": [
            "30_1_5_20170116174525125.jpg",
            "30_2_0_20170116174525125.jpg",
            "39_1_20170116174525125.jpg.chip.jpg",
            "holiday.png",
        ],
        "unreadable": [f"{age}_1_1_20170116174525125.jpg" for age in (30, 31, 32)],
    }
    assert faces.summary == (
        "4 images; left out: 2 aged 100 or more (100_1_2_20170112213500905.jpg, "
        "116_1_2_20170112213500906.jpg), 4 misnamed (30_1_5_20170116174525125.jpg, "
        "30_2_0_20170116174525125.jpg, 39_1_20170116174525125.jpg.chip.jpg, ...), 3 unreadable "
        "(30_1_1_20170116174525125.jpg, 31_1_1_20170116174525125.jpg, 32_1_1_20170116174525125.jpg)"
    )


def test_copies_of_a_face_share_a_group_under_other_ages_too(faces):
    blue, red, copy, green = faces.groups
    assert red == copy
    assert len({blue, red, green}) == 3
    assert len(set(faces.names)) == 4


def patchwork(n, seed=0):
    """Grey pictures of 8 x 8 patches, each of its own."""
    patches = np.random.default_rng(seed).integers(256, size=(n, 8, 8, 1), dtype=np.uint8)
    return patches.repeat(4, axis=1).repeat(4, axis=2).repeat(3, axis=3)


@pytest.mark.parametrize(
    "change",
    [
        lambda image: image,
        lambda image: np.clip(image * 0.9 + 10, 0, 255).astype(np.uint8),
        lambda image: np.asarray(saved_again(image, quality=85)),
        lambda image: image.repeat(2, axis=0).repeat(2, axis=1)[::2, ::2],
    ],
    ids=["same", "other light", "encoded again", "resized"],
)
def test_copies_are_found_by_how_they_look(change):
    images = patchwork(40)
    groups = groups_of_copies(
        np.concatenate([images, [change(image) for image in images[::-1]]]), [str(i) for i in range(80)]
    )
    assert groups[:40].tolist() == groups[40:][::-1].tolist()
    assert len(set(groups)) == 40


def saved_again(image, quality):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return Image.open(file)


def test_copies_are_found_across_blocks_of_rows(monkeypatch):
    monkeypatch.setattr("reproduction.images._ROWS_AT_ONCE", 7)
    images = patchwork(30)
    groups = groups_of_copies(np.concatenate([images, images]), [str(i) for i in range(60)])
    assert groups[:30].tolist() == groups[30:].tolist()
    assert len(set(groups)) == 30


def test_pictures_of_one_colour_are_copies_only_if_their_files_are():
    flat = np.stack([np.full((8, 8, 3), value, np.uint8) for value in (10, 10, 200)])
    assert groups_of_copies(flat, ["a", "a", "b"]).tolist() == [0, 0, 1]


def test_copies_of_copies_share_a_group():
    images = patchwork(3)
    digests = ["a", "b", "b"]  # the first looks like the second, whose file is also the third
    groups = groups_of_copies(np.stack([images[0], images[0], images[1]]), digests)
    assert len(set(groups)) == 1


def test_name_of_a_face_says_nothing_about_the_person(faces):
    assert all(len(name) == 16 and set(name) <= set("0123456789abcdef") for name in faces.names)


def test_summary_of_a_whole_set_is_its_size():
    whole = ImageData(
        images=np.zeros((1, 2, 2, 3), np.uint8),
        y=np.zeros(1, int),
        names=["a"],
        groups=np.zeros(1, int),
        captions=["No DR"],
        skipped={"unreadable": []},
    )
    assert whole.summary == "1 image"
    assert len(whole) == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {},
            r"has no image of known age: of 0 files, none is named \[age\]_\[gender\]_\[race\]_\[date\]\.jpg",
        ),
        ({"a.jpg": b"", "b.txt": b""}, "of 2 files, none is named"),
        ({"100_1_1_2017.jpg": encoded(RED)}, "of 1 files, none .* with an age below 100"),
        ({"1_1_1_2017.jpg": b"?", "2_1_1_2017.jpg": b"?"}, "None of the 2 images .* can be read"),
    ],
)
def test_set_without_a_usable_face_is_refused(tmp_path, files, message):
    (tmp_path / "folder").mkdir()
    for path in (folder_of(files, tmp_path / "folder"), zip_of(files, tmp_path / "faces.zip")):
        with pytest.raises(ValueError, match=message):
            load_utkface(path)


def test_missing_path_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"faces\.zip is not there; give the folder or the zip"):
        load_utkface(tmp_path / "faces.zip")


def test_file_that_is_no_zip_is_refused(tmp_path):
    (tmp_path / "faces.tar").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"faces\.tar is neither a folder nor a zip file"):
        load_utkface(tmp_path / "faces.tar")


def test_zip_that_was_cut_is_refused(tmp_path):
    path = zip_of(FACES, tmp_path / "faces.zip")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"faces\.zip is a damaged zip file"):
        load_utkface(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damage_inside_a_zip_costs_one_image(tmp_path, compression):
    files = {"1_1_1_2017.jpg": encoded(RED), "2_1_1_2017.jpg": encoded(RED)}
    path = zip_of(files, tmp_path / "faces.zip", compression=compression)
    content = bytearray(path.read_bytes())
    first_byte = 30 + len("1_1_1_2017.jpg")  # after the header of the first file
    content[first_byte : first_byte + 10] = b"\xff" * 10
    path.write_bytes(content)
    data = load_utkface(path, 16)
    assert data.captions == ["age 2"]
    assert data.skipped["unreadable"] == ["1_1_1_2017.jpg"]


def test_progress_sees_each_file_once_and_in_order(tmp_path):
    seen = []

    def track(names):
        assert len(names) == 7
        for name in names:
            yield name
            seen.append(name)

    load_utkface(folder_of(FACES, tmp_path), 16, track=track)
    assert len(seen) == 7
    assert seen == sorted(seen)


def test_image_size_is_checked(tmp_path):
    with pytest.raises(ValueError, match="image_size must be at least 1 pixel; got 0"):
        load_utkface(folder_of(FACES, tmp_path), 0)


def test_missing_pillow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r'needs Pillow: pip install "ordinalrisk\[vision\]"') as raised:
        load_utkface(folder_of(FACES, tmp_path))
    assert not isinstance(raised.value, ModuleNotFoundError)


def halves_of(left, right, size, form):
    image = Image.new("RGB", size, left)
    image.paste(right, (size[0] // 2, 0, *size))
    stream = io.BytesIO()
    image.save(stream, form, quality=95, subsampling=0)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
@pytest.mark.parametrize("size", [(40, 40), (1600, 1600), (3200, 1600), (7, 7)])
def test_picture_is_resized_and_not_turned(form, size):
    file = ImageFile("x", lambda: halves_of(RED, BLUE, size, form))
    pixels = decode_files([file], 32).images[0]
    assert np.abs(pixels[:, :8].astype(int) - RED).max() < 12
    assert np.abs(pixels[:, -8:].astype(int) - BLUE).max() < 12


def test_middle_of_a_wide_picture_is_kept_unstretched():
    image = Image.new("RGB", (60, 20), RED)
    image.paste(GREEN, (20, 0, 40, 20))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    pixels = decode_files([ImageFile("x", stream.getvalue)], 20).images[0]
    assert (pixels == GREEN).all()


def test_shrinking_averages():
    board = np.indices((64, 64)).sum(axis=0) % 2 * 255
    stream = io.BytesIO()
    Image.fromarray(board.astype(np.uint8)).save(stream, "PNG")
    pixels = decode_files([ImageFile("x", stream.getvalue)], 8).images[0]
    assert np.abs(pixels.astype(int) - 127).max() < 10


def test_decompression_bomb_is_left_out(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    files = [ImageFile("small", lambda: encoded(RED)), ImageFile("bomb", lambda: encoded(RED, (100, 100)))]
    decoded = decode_files(files, 8)
    assert decoded.unreadable == ["bomb"]
    assert decoded.rows.tolist() == [0]
    assert len(decoded.images) == len(decoded.sha256) == 1


def test_unreadable_files_do_not_shift_the_others():
    shades = [10 * k for k in range(20)]
    files = [
        ImageFile(str(k), lambda k=k: b"broken" if k % 3 == 1 else encoded((shades[k],) * 3, form="PNG"))
        for k in range(20)
    ]
    decoded = decode_files(files, 4)
    assert decoded.rows.tolist() == [k for k in range(20) if k % 3 != 1]
    assert decoded.images[:, 0, 0, 0].tolist() == [shades[k] for k in decoded.rows]


RETINAS = {
    "trainLabels.csv": b"image,level\n7_right,4\n7_left,0\n10_left,2\n11_left,1\n12_left,3\n",
    "train/7_left.jpeg": encoded(RED),
    "train/7_right.jpeg": encoded(GREEN),
    "train/more/10_left.PNG": encoded(BLUE, form="PNG"),
    "train/12_left.jpeg": b"broken",
    "test/99_left.jpeg": encoded(GREY),
    "train/more/7_left.jpg": encoded(GREY),
    "notes.txt": b"hello",
}


def test_retinas_by_name_with_the_eyes_of_a_patient_together(tmp_path):
    data = load_kaggle_retinopathy(folder_of(RETINAS, tmp_path), 16)
    assert data.names == ["10_left", "7_left", "7_right"]
    assert colours(data.images) == ["blue", "red", "green"]
    assert data.y.tolist() == [2, 0, 4]
    assert data.captions == ["Moderate", "No DR", "Proliferative"]
    assert data.groups[1] == data.groups[2] != data.groups[0]


def test_every_retina_left_out_is_named_with_its_reason(tmp_path):
    data = load_kaggle_retinopathy(folder_of(RETINAS, tmp_path), 16)
    assert data.skipped == {
        "without an image file": ["11_left"],
        "without a label": ["99_left.jpeg"],
        "repeated": ["train/more/7_left.jpg"],
        "unreadable": ["12_left.jpeg"],
    }


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (b"", "must have the columns image and level; it has none"),
        (b"image,grade\n7_left,0\n", "must have the columns image and level; it has image, grade"),
        (b"image,level\n7_left,0\n7_right,5\n", r"trainLabels\.csv, line 3: level must be 0 to 4; got '5'"),
        (b"image,level\n\n7_left,mild\n", r"line 3: level must be 0 to 4; got 'mild'"),
        (b"image,level\n7_left\n", r"line 2: level must be 0 to 4; got ''"),
        (b"image,level\n7_left,0\n7_left,1\n", r"line 3: image '7_left' is listed twice"),
        (b"image,level\n8_left,0\n", r"has no labelled image: trainLabels\.csv names 1 images"),
        (b"image,level\n12_left,0\n", "None of the 1 labelled images in .* can be read"),
        (b"image,level\n\xff\xff,0\n", r"trainLabels\.csv can't be read as CSV"),
    ],
)
def test_wrong_table_of_grades_is_refused(tmp_path, labels, message):
    folder_of({**RETINAS, "trainLabels.csv": labels}, tmp_path)
    with pytest.raises(ValueError, match=message):
        load_kaggle_retinopathy(tmp_path, 16)


def test_table_of_grades_may_begin_with_a_byte_order_mark(tmp_path):
    folder_of({**RETINAS, "trainLabels.csv": b"\xef\xbb\xbfimage,level\r\n7_left,3\r\n"}, tmp_path)
    assert load_kaggle_retinopathy(tmp_path, 16).captions == ["Severe"]


def test_missing_table_of_grades_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"trainLabels\.csv is not there"):
        load_kaggle_retinopathy(tmp_path)


def small_retinamnist(path, **changes):
    rng = np.random.default_rng(0)
    arrays = {}
    for split, n in (("train", 4), ("val", 2), ("test", 3)):
        arrays[f"{split}_images"] = rng.integers(0, 256, (n, 28, 28, 3), np.uint8)
        arrays[f"{split}_labels"] = rng.integers(0, 5, (n, 1), np.uint8)
    arrays.update(changes)
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    return arrays


def test_retinamnist_keeps_its_splits(tmp_path):
    arrays = small_retinamnist(tmp_path / "r.npz")
    splits = load_retinamnist(tmp_path / "r.npz")
    for split, data in splits._asdict().items():
        assert np.array_equal(data.images, arrays[f"{split}_images"])
        assert data.y.tolist() == arrays[f"{split}_labels"].ravel().tolist()
        assert data.captions == [GRADES[label] for label in data.y]
    assert splits.val.names == ["val_0", "val_1"]
    assert len({group for data in splits for group in data.groups}) == 9


def test_retinamnist_is_resized_on_request(tmp_path):
    small_retinamnist(tmp_path / "r.npz", val_images=np.full((2, 28, 28, 3), 77, np.uint8))
    splits = load_retinamnist(tmp_path / "r.npz", image_size=40)
    assert splits.train.images.shape == (4, 40, 40, 3)
    assert (splits.val.images == 77).all()
    with pytest.raises(ValueError, match="image_size must be at least 1 pixel; got 0"):
        load_retinamnist(tmp_path / "r.npz", image_size=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val_labels": None, "test_images": None}, r"r\.npz lacks the arrays val_labels, test_images\."),
        ({"val_labels": np.array([[0], [5]])}, "val_labels must have a grade 0 to 4 for each of 2 images"),
        ({"val_labels": np.array([[0]])}, "val_labels must have a grade 0 to 4 for each of 2 images"),
        ({"val_images": np.zeros((2, 28, 28), np.uint8)}, r"val_images must be uint8 .* shape \(2, 28, 28\)"),
        ({"val_images": np.zeros((2, 28, 28, 3))}, "val_images must be uint8 .* got float64"),
        ({"val_labels": np.array([[0], [None]])}, "is not a whole npz file of arrays"),
    ],
)
def test_wrong_retinamnist_is_refused(tmp_path, changes, message):
    small_retinamnist(tmp_path / "r.npz", **changes)
    with pytest.raises(ValueError, match=message):
        load_retinamnist(tmp_path / "r.npz")


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "array"])
def test_file_that_is_no_npz_is_refused(tmp_path, damage):
    path = tmp_path / "r.npz"
    small_retinamnist(path)
    if damage == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        path.write_bytes({"cut": path.read_bytes()[:-500], "text": b"hello", "empty": b""}[damage])
    with pytest.raises(ValueError, match=r"r\.npz is not a whole npz file of arrays"):
        load_retinamnist(path)


def test_missing_retinamnist_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"r\.npz is not there"):
        load_retinamnist(tmp_path / "r.npz")


@cache
def utkface64():
    return load_utkface(DATA / "utkface64.zip", image_size=64)


@needs_utkface
def test_no_copy_of_a_training_face_is_among_the_scores_of_the_documentation():
    folder = Path(__file__).parents[1] / "docs" / "scores"
    if not folder.is_dir():
        pytest.skip("the documentation is not beside the tests")
    data, scores = utkface64(), read_scores(folder / "utkface.csv.gz")
    train, held = read_split(folder / "utkface-split.json", data.names)
    assert (len(train), len(held)) == (6_672, 17_000)
    assert list(scores.names) == [data.names[row] for row in held]
    assert np.array_equal(scores.y, data.y[held])
    assert not set(data.groups[train]) & set(data.groups[held])


@needs_utkface
def test_all_of_utkface():
    data = utkface64()
    assert data.images.shape == (23_672, 64, 64, 3)
    assert len(set(data.names)) == 23_672
    assert {reason: len(files) for reason, files in data.skipped.items()} == {
        "aged 100 or more": 32,
        "misnamed": 3,
        "unreadable": 0,
    }
    assert data.skipped["misnamed"] == [
        "39_1_20170116174525125.jpg.chip.jpg",
        "61_1_20170109142408075.jpg.chip.jpg",
        "61_1_20170109150557335.jpg.chip.jpg",
    ]
    sizes = np.bincount(data.groups)
    assert ((sizes > 1).sum(), sizes.max()) == (898, 5)
    assert [int(caption.split()[1]) // 5 for caption in data.captions] == data.y.tolist()
    of_group = {group: set() for group in np.flatnonzero(sizes > 1)}
    for group, caption in zip(data.groups, data.captions, strict=True):
        of_group.get(group, set()).add(caption)
    assert sum(len(captions) > 1 for captions in of_group.values()) == 620


@needs_retinamnist
def test_all_of_retinamnist():
    splits = load_retinamnist(DATA / "retinamnist.npz")
    assert [data.images.shape for data in splits] == [(n, 28, 28, 3) for n in (1080, 120, 400)]
    assert [np.bincount(data.y).tolist() for data in splits] == [
        [486, 128, 206, 194, 66],
        [54, 12, 28, 20, 6],
        [174, 46, 92, 68, 20],
    ]
