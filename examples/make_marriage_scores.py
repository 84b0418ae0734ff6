"""Write marriage_scores.xlsx: scores of an ordered logit for answers to a survey.

The answers are part of statsmodels. A workbook is a zip file of XML; this script writes the parts that are
needed.
"""

import zipfile
from xml.sax.saxutils import escape

import numpy as np
import statsmodels.api as sm
from statsmodels.miscmodels.ordinal_model import OrderedModel

import ordinalrisk as orisk

RATINGS = ["very poor", "poor", "fair", "good", "very good"]
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
CELLS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def scores() -> dict[str, list[list]]:
    answers = sm.datasets.fair.load_pandas().data
    rating = answers.pop("rate_marriage").astype(int).to_numpy() - 1
    train, others = orisk.splitting.split_rows(len(answers), share=0.8, random_state=0)
    model = OrderedModel(rating[train], answers.iloc[train], distr="logit")
    fitted = model.fit(method="bfgs", disp=False)
    rows = np.random.default_rng(0).permutation(others)[:900]  # the survey is sorted
    proba = np.asarray(fitted.model.predict(fitted.params, answers.iloc[rows]))
    thousandths = np.round(proba * 1000).astype(int)
    thousandths[:, 3] += 1000 - thousandths.sum(axis=1)
    header = [
        "answer",
        "age",
        *(f"p_{name.replace(' ', '_')}" for name in RATINGS),
        "rating",
    ]
    table = [
        [int(row), float(answers["age"].iloc[row]), *(each / 1000).tolist(), RATINGS[y]]
        for row, each, y in zip(rows, thousandths, rating[rows], strict=True)
    ]
    return {
        "calibration": [header, *table[:600]],
        "test": [header, *table[600:]],
        "new": [header[:-1], *(row[:-1] for row in table[600:])],
    }


def cell(place: str, value) -> str:
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'


def write_workbook(path: str, sheets: dict[str, list[list]]) -> None:
    numbered = [*enumerate(sheets, 1)]
    names = "".join(
        f'<sheet name="{n}" sheetId="{i}" r:id="rId{i}"/>' for i, n in numbered
    )
    targets = "".join(
        f'<Relationship Id="rId{i}" Type="{OFFICE}/worksheet" Target="worksheets/{n}.xml"/>'
        for i, n in numbered
    )
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/{n}.xml" ContentType="{TYPE}.worksheet+xml"/>'
        for n in sheets
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default '
        'Extension="rels" ContentType="application/vnd.openxmlformats-package.'
        'relationships+xml"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="{TYPE}.sheet.main+xml"/>{kinds}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship '
        f'Id="rId1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{CELLS}" xmlns:r="{OFFICE}"><sheets>'
        f"{names}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f"{targets}</Relationships>",
    }
    for name, rows in sheets.items():
        lines = "".join(
            f'<row r="{r}">'
            + "".join(cell(f"{chr(65 + c)}{r}", v) for c, v in enumerate(row))
            + "</row>"
            for r, row in enumerate(rows, 1)
        )
        parts[f"xl/worksheets/{name}.xml"] = (
            f'<worksheet xmlns="{CELLS}"><sheetData>{lines}</sheetData></worksheet>'
        )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            entry = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, f'<?xml version="1.0" encoding="UTF-8"?>{text}')


if __name__ == "__main__":
    write_workbook("marriage_scores.xlsx", scores())
