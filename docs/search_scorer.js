// The scores of Sphinx, with one change: of pages that match equally well, the one on error messages comes first.
var Scorer = {
  score: ([docname, , , , score]) => (docname === "messages" ? score + 4 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
