// One answer, streamed from the gateway into a turn.

import { events } from "./events.js";
import { GatewayError, request } from "./gateway.js";

/**
 * Asks `target` and writes the answer into `turn` as it comes, calling `changed` each time. Never
 * throws: what goes wrong is in `turn.error`, and an answer that `signal` ended is `turn.stopped`.
 */
export async function answer(target, messages, turn, signal, changed) {
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  try {
    const body = { model: target, messages, stream: true, stream_options: { include_usage: true } };
    const response = await request("/v1/chat/completions", { body, signal });
    let finished = false;
    for await (const event of events(response.body)) {
      take(event, turn, seconds);
      finished ||= Boolean(turn.finish);
      changed();
    }
    if (!finished) throw new GatewayError("The answer was cut off: the connection ended before it did.");
  } catch (error) {
    if (signal.aborted) turn.stopped = true;
    else turn.error = readable(error);
  }
  turn.seconds = seconds();
  changed();
}

function take(event, turn, seconds) {
  if (event.error) throw new GatewayError(event.error.message, 0, event.error.code);
  const choice = event.choices?.[0];
  if (choice?.delta?.reasoning_content) {
    turn.reasoning += choice.delta.reasoning_content;
    turn.thought = seconds();
  }
  if (choice?.delta?.content) turn.text += choice.delta.content;
  if (choice?.finish_reason) turn.finish = choice.finish_reason;
  if (event.usage) turn.usage = event.usage;
  if (event.lmclient) Object.assign(turn, { profile: event.lmclient.profile, cached: event.lmclient.cached });
}

function readable(error) {
  if (error instanceof GatewayError) return error.message;
  // A browser says no more than "network error" of a connection that broke.
  if (error instanceof TypeError)
    return "The connection to the server broke. Is lmclient serve still running?";
  return `The answer cannot be read: ${error.message}`;
}
