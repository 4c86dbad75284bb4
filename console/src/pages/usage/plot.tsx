/** The plot of usage by day. Loaded when it is first shown; the table on the page has the same data as text. */

import { createEffect, createSignal, onCleanup, onMount, type JSX } from "solid-js";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { themeChoice } from "../../ui/theme";
import { dayName, type DaySeries } from "./series";

interface PlotProps {
  series: DaySeries;
  label: string;
  format(value: number): string;
}

const HEIGHT = 220;

export default function Plot(props: PlotProps): JSX.Element {
  let holder!: HTMLDivElement;
  let plot: uPlot | undefined;
  const [shown, setShown] = createSignal("");
  const showIndex = (index: number | null | undefined): void => {
    const day = index == null ? undefined : props.series.days[index];
    const value = index == null ? null : (props.series.values[index] ?? null);
    setShown(day === undefined ? "" : `${dayName(day * 1_000)}: ${value === null ? "nothing reported" : props.format(value)}`);
  };
  const draw = (): void => {
    plot?.destroy();
    plot = new uPlot(plotOptions(holder, props, showIndex), [props.series.days, props.series.values], holder);
  };
  onMount(() => {
    const resized = new ResizeObserver(() => plot?.setSize({ width: holder.clientWidth, height: HEIGHT }));
    resized.observe(holder);
    // The colors are read from the theme, which the system can change, too.
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    onCleanup(() => [resized, themed].forEach((it) => it.disconnect()));
  });
  createEffect(() => {
    themeChoice();
    draw();
  });
  onCleanup(() => plot?.destroy());
  return (
    <figure class="usage-plot">
      <div ref={holder} role="img" aria-label={`${props.label} by day; the table has the values`} />
      <figcaption class="muted">{shown() || `${props.label} by day (UTC)`}</figcaption>
    </figure>
  );
}

function plotOptions(holder: HTMLElement, props: PlotProps, onIndex: (index: number | null | undefined) => void): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: color("--text-muted"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: color("--border"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: holder.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { setScale: false } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC"),
    scales: {
      // Half a day on both sides is the room of the first and the last bar.
      x: { range: (_, min, max) => [min - 43_200, max + 43_200] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 28, grid: { show: false }, values: (_, splits) => splits.map((it) => dayName(it * 1_000).slice(5)) },
      { ...axis, size: 72, values: (_, splits) => splits.map(props.format) },
    ],
    series: [
      {},
      {
        fill: color("--accent"),
        stroke: color("--accent"),
        width: 0,
        points: { show: false },
        ...(uPlot.paths.bars && { paths: uPlot.paths.bars({ size: [0.7, 48] }) }),
      },
    ],
    hooks: { setCursor: [(it) => onIndex(it.cursor.idx)] },
  };
}
