// Calls of the HTTP API. What fails is thrown as an error whose message can be shown to a person.

export class CallError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status; // 0: the gateway did not answer.
  }
}

export async function call(path, { method = "GET", body, signal } = {}) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const text = body === undefined ? undefined : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, { method, headers, body: text, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new CallError("The gateway does not answer.", 0);
  }
  const answer = await response.text();
  if (!response.ok) throw new CallError(messageOf(answer, response), response.status);
  return answer ? JSON.parse(answer) : null;
}

// The problem details of the API (RFC 9457).
function messageOf(answer, response) {
  try {
    const problem = JSON.parse(answer);
    const sentence = problem.detail || problem.title;
    return problem.hint ? `${sentence} ${problem.hint}` : sentence;
  } catch {
    return `The gateway answered ${response.status}.`;
  }
}

export const path = (strings, ...parts) =>
  strings.reduce((whole, text, index) => whole + encodeURIComponent(parts[index - 1]) + text);

// As Promise.all over a list, a few at a time: a page must not be a load on the cluster.
export async function mapFew(items, look, count = 6) {
  const results = new Array(items.length);
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await look(items[index]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, items.length) }, work));
  return results;
}
