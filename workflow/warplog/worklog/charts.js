// Draws the charts on a screen that is wide enough; in print, on a phone and without scripts the figures stay.
(() => {
  const wide = matchMedia("screen and (min-width: 48rem)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const draw = async () => {
    if (!wide.matches) return;
    const axis = { gridColor: dark.matches ? "#34342f" : "#e4e3de" };
    const options = { actions: false, renderer: "svg", config: { background: "transparent", axis } };
    if (dark.matches) options.theme = "dark";
    const { view } = await vegaEmbed("#chart", SPEC, options);
    document.documentElement.classList.add("drawn");
    window.chartView = view;
  };
  wide.addEventListener("change", draw);
  dark.addEventListener("change", draw);
  draw();
  // A box of code opens at its hottest line: that of the variant itself in a listing, that of the file in a heat map.
  const share = (mark) => parseFloat(mark.style.getPropertyValue("--h")) || 0;
  const hottest = (box) =>
    box.querySelector(".hottest") ||
    [...box.querySelectorAll(".heat[style]")].reduce((most, one) => (most && share(most) >= share(one) ? most : one), null);
  const showHottest = () => {
    for (const box of document.querySelectorAll(".listing pre, .heatmap")) {
      const line = hottest(box), place = line && line.getBoundingClientRect();
      if (!place || !place.height || box.dataset.placed) continue;
      box.dataset.placed = "yes";
      const below = place.bottom - box.getBoundingClientRect().top;
      if (below > box.clientHeight) box.scrollTop = below - box.clientHeight / 2;
    }
  };
  document.addEventListener("toggle", showHottest, true);
  showHottest();
  // A link to a line or a step opens the folded parts around it.
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    if (target) target.scrollIntoView({ block: target.tagName === "SPAN" ? "center" : "start" });
  };
  addEventListener("hashchange", open);
  open();
})();
