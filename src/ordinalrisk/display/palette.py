"""The colours of all pictures: the palette of Okabe and Ito, safe for colour-blind readers."""

INK, MUTED, GREY, FAINT = "#222222", "#666666", "#b9b9b9", "#e4e4e4"
ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE = (
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
)
