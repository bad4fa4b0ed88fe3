/** A package to compare with, or undefined, aloud, where it is not installed: `npm --prefix bench ci` installs them. */
export async function peer<T>(name: string): Promise<T | undefined> {
  try {
    return (await import(name)) as T
  } catch (error) {
    console.log(`${name} is left out: it cannot be loaded (${error instanceof Error ? error.message : error})`)
    return undefined
  }
}
