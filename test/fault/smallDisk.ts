import { runAsRoot } from './runAsRoot.ts'
import { createTempFolder, type TempFolder } from './tempFolder.ts'

/** Mounts a file system of limited size; undefined without the permission to mount. */
export function mountSmallDisk(bytes: number): TempFolder | undefined {
  const folder = createTempFolder()
  const deleteFolder = (): void => folder[Symbol.dispose]()
  if (!runAsRoot('mount', '-t', 'tmpfs', '-o', `size=${bytes},mode=777`, 'tmpfs', folder.path)) {
    deleteFolder()
    return undefined
  }
  return {
    path: folder.path,
    [Symbol.dispose]: () => {
      runAsRoot('umount', '--lazy', folder.path)
      deleteFolder()
    },
  }
}
