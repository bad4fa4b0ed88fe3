import { ApiError, authHeaders } from './client.ts'

/**
 * Sends a file and reports the share that was sent. `fetch` cannot report the progress of a request.
 *
 * @param type content type of the request; the name of the file is sent in a header
 */
export function uploadFile<T>(
  path: string,
  file: File,
  type: string,
  onProgress?: (share: number) => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const upload = new XMLHttpRequest()
  upload.open('POST', path)
  upload.responseType = 'json'
  for (const [name, value] of Object.entries({ ...authHeaders(), 'content-type': type }))
    upload.setRequestHeader(name, value)
  upload.setRequestHeader('x-filename', encodeURIComponent(file.name))
  upload.upload.onprogress = ({ loaded, total }) => onProgress?.(total === 0 ? 1 : loaded / total)
  upload.onerror = () => reject(new ApiError(0, 'The server cannot be reached.'))
  upload.onload = () => {
    const body = upload.response as (T & { error?: { message: string } }) | null
    if (upload.status < 300 && body !== null) resolve(body)
    else
      reject(new ApiError(upload.status, body?.error?.message ?? `The server answered with status ${upload.status}.`))
  }
  upload.send(file)
  return promise
}
