/**
 * Formats a count with its noun.
 *
 * @example
 * many(1, 'message') // '1 message'
 * many(2, 'entity', 'entities') // '2 entities'
 */
export const formatCount = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : plural}`
