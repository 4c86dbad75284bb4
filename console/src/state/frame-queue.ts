/** Runs a function in frames: in every second one at most, and less often if what it changes takes long to draw. */

/** A page in the background has no frames. */
const HIDDEN_MS = 500;
/** The time of one frame of 60 per second. */
const FRAME_MS = 16;
/** More updates per second do not make a text easier to read. */
const INTERVAL_MS = 2 * FRAME_MS;
const PAUSE_MAX_MS = 500;

export class FrameQueue {
  readonly #run: () => void;
  #isWaiting = false;
  /** The next run is not earlier than this. */
  #earliest = 0;

  constructor(run: () => void) {
    this.#run = run;
  }

  /** Runs the function in the next frame, if it does not wait for one already. */
  request(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    const pause = this.#earliest - performance.now();
    if (document.visibilityState !== "visible") setTimeout(() => this.#start(), HIDDEN_MS);
    else if (pause >= FRAME_MS) setTimeout(() => requestAnimationFrame(() => this.#start()), pause - FRAME_MS);
    else requestAnimationFrame(() => this.#start());
  }

  #start(): void {
    this.#isWaiting = false;
    const start = performance.now();
    this.#earliest = start + INTERVAL_MS;
    this.#run();
    // A task after a frame starts when the frame was drawn.
    setTimeout(() => {
      const end = performance.now();
      this.#earliest = Math.max(this.#earliest, end + Math.min(end - start, PAUSE_MAX_MS));
    });
  }
}
