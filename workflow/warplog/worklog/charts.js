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
  // A link to a line or a step opens the folded parts around it.
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    if (target) target.scrollIntoView({ block: target.tagName === "SPAN" ? "center" : "start" });
  };
  addEventListener("hashchange", open);
  open();
})();
