// Requests to the server that this page came from, with a token where it wants one.

import { askForToken, token } from "./token.js";

/** What the server, or the way to it, refused: a message for people, and OpenAI's `code` if there is one. */
export class GatewayError extends Error {
  constructor(message, status = 0, code = null) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The response of a request that went well. Throws `GatewayError`, and `AbortError` once `signal` says so. */
export async function request(path, { body, signal } = {}) {
  for (;;) {
    const used = token();
    const response = await sent(path, body, signal, used);
    if (response.ok) return response;
    const error = await errorOf(response);
    if (response.status !== 401 || error.code !== "invalid_api_key") throw error;
    if (body !== undefined) {
      // A model's provider may have said this. What asks no provider tells whether it was the server.
      await request("/v1/models", { signal });
      if (used === token()) throw error;
    } else if (used === token() && !(await askForToken(used !== ""))) throw error;
  }
}

/** The JSON at a path. */
export async function json(path, options) {
  return (await request(path, options)).json();
}

async function sent(path, body, signal, used) {
  const headers = used ? { authorization: `Bearer ${used}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  try {
    return await fetch(path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      signal,
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new GatewayError("The server cannot be reached. Is lmclient serve still running?");
  }
}

async function errorOf(response) {
  try {
    const { error } = await response.json();
    return new GatewayError(error.message, response.status, error.code);
  } catch {
    return new GatewayError(`The server answered with status ${response.status}.`, response.status);
  }
}
