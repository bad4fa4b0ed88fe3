import { createTempPaths } from '../../stores/tempPaths.ts'

/** Returns a function that returns the URL of a new SQLite store. The stores are deleted after the tests of the file. */
export function createSqliteUrls(): () => string {
  const newPath = createTempPaths()
  return () => `sqlite:${newPath()}`
}

/** Returns stores that tests run against, by name. */
export const createTestStores = (
  newSqliteUrl = createSqliteUrls(),
): readonly (readonly [name: string, store: () => string])[] => [
  ['RAM', () => 'ram:'],
  ['SQLite', newSqliteUrl],
]
