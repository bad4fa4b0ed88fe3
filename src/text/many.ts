/**
 * A number with what it counts.
 *
 * @example
 * many(1, 'message') // '1 message'
 * many(2, 'entity', 'entities') // '2 entities'
 */
export const many = (count: number, one: string, more = `${one}s`): string => `${count} ${count === 1 ? one : more}`
