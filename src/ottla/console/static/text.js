// How figures, times and records are written.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const count = (value) => whole.format(value);
export const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
export const rate = (value) => `${value < 10 ? short.format(value) : whole.format(value)}/s`;

export function seconds(value) {
  if (value == null) return "unknown";
  if (value < 120) return `${short.format(value)} s`;
  if (value < 7200) return `${short.format(value / 60)} min`;
  return value < 172800 ? `${short.format(value / 3600)} h` : `${short.format(value / 86400)} d`;
}

export const time = (ms) => (ms < 0 ? "" : new Date(ms).toISOString().replace("T", " ").replace("Z", ""));

export function bytesOrText(record, name) {
  return record[`${name}_base64`] === undefined ? record[name] : `base64 ${record[`${name}_base64`]}`;
}

// JSON is laid out; everything else stays as it is.
export function laidOut(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}
