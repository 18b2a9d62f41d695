// `Run`: the requests about one run.
import { type EventOptions, readEvents } from "./events.js";
import type { Transport } from "./transport.js";
import type { RunDetails, RunEvent } from "./types.js";

/** A run of an agent. */
export class Run {
  readonly #http: Transport;

  constructor(
    http: Transport,
    readonly id: string,
  ) {
    this.#http = http;
  }

  /** The run as it is now. */
  async get(): Promise<RunDetails> {
    return (await this.#http.request("GET", "/runs/{run}", { path: { run: this.id } })) as RunDetails;
  }

  /**
   * The events of the run, from the first (or the one after number `after`) to `run_ended`. A broken connection is restored, and the stream
   * continues after the last numbered event. Events without a number, such as pieces of the answer, may be lost then; `run_ended` has the
   * whole answer. A suspended run sends `run_suspended`, and the stream waits for it to continue.
   */
  events(options: EventOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
    return readEvents(this.#http, this.id, options);
  }

  /** Waits until the run is over, also through suspensions, and returns it. */
  async wait(options: Omit<EventOptions, "after"> = {}): Promise<RunDetails> {
    for await (const _ of this.events(options));
    return await this.get();
  }

  async cancel(): Promise<unknown> {
    return await this.#http.request("POST", "/runs/{run}/cancel", { path: { run: this.id }, body: {} });
  }

  /** Records whether a step with an unknown outcome took effect (`done`) or not (`not_done`), and resumes the run. */
  async resolve(step: string, outcome: "done" | "not_done"): Promise<unknown> {
    return await this.#http.request("POST", "/unknown-steps", { body: { run: this.id, step, outcome } });
  }
}
