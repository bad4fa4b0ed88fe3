/** Lossless compression of idle sessions. `decompress` must restore exactly what `compress` was given. */
export type Compressor = { compress(bytes: Uint8Array): Uint8Array; decompress(bytes: Uint8Array): Uint8Array }

/** Compresses a text into a string with one character per byte: V8 strings have less overhead than byte arrays. */
export const compressText = (text: string, compressor: Compressor): string =>
  bytesToString(compressor.compress(new TextEncoder().encode(text)))

export const decompressText = (text: string, compressor: Compressor): string =>
  new TextDecoder().decode(compressor.decompress(stringToBytes(text)))

/** Engines limit the number of arguments of a call. */
const maxCharsPerCall = 8_192

function bytesToString(bytes: Uint8Array): string {
  let text = ''
  // Reflect.apply takes the bytes as a list; spreading them would iterate one by one.
  for (let from = 0; from < bytes.length; from += maxCharsPerCall)
    text += Reflect.apply(String.fromCharCode, null, bytes.subarray(from, from + maxCharsPerCall))
  return text
}

function stringToBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < bytes.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}
