import { asRoot } from './asRoot.ts'
import { type Folder, newFolder } from './folder.ts'

/** A folder with room for so many bytes and no more; undefined where nobody may make one. */
export function newRoom(bytes: number): Folder | undefined {
  const folder = newFolder()
  const leave = (): void => folder[Symbol.dispose]()
  if (!asRoot('mount', '-t', 'tmpfs', '-o', `size=${bytes},mode=777`, 'tmpfs', folder.path)) {
    leave()
    return undefined
  }
  return {
    path: folder.path,
    [Symbol.dispose]: () => {
      asRoot('umount', '--lazy', folder.path)
      leave()
    },
  }
}
