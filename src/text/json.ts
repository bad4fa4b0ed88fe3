/** JSON without the white space between its parts, to the letter otherwise; any other text as it is. */
export function compactJson(text: string): string {
  if (!/^\s*[[{]/.test(text.slice(0, 200))) return text
  try {
    JSON.parse(text)
  } catch {
    return text
  }
  // parsing and writing again would change long numbers and repeated names
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (part) => (part.startsWith('"') ? part : ''))
}
