/** V8 stores shorter substrings on their own. */
const minSharedCharacters = 13

/**
 * Copies a text out of the one it was cut from. V8 keeps the whole original in memory for a substring of 13 characters
 * or more, so that a cache of words could retain megabytes for each. Copy whatever outlives the text it was cut from.
 */
export const copyText = (text: string): string => (text.length < minSharedCharacters ? text : ` ${text}`.slice(1))
