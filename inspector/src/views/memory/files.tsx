import { useRef, useState } from 'preact/hooks'
import { apiPath, request } from '../../api/client.ts'
import type { FileInfo, Page } from '../../api/types.ts'
import { uploadFile } from '../../api/upload.ts'
import { Badge } from '../../components/layout.tsx'
import { EmptyState, ErrorState, ResourceView } from '../../components/states.tsx'
import { formatBytes, formatNumber, formatPercent, formatTime } from '../../format.ts'
import { useResource } from '../../useResource.ts'

/** Files of a tenant, with upload. */
export function FilesTab({ scope }: { scope: string }) {
  const [error, setError] = useState('')
  const [upload, setUpload] = useState<{ readonly name: string; readonly share: number }>()
  const files = useResource(
    (signal) => request<Page<FileInfo>>(apiPath(['api', 'scopes', scope, 'files'], { limit: 500 }), { signal }),
    [scope],
    (event) => event.key === scope,
  )
  const send = async (file: File): Promise<void> => {
    setError('')
    setUpload({ name: file.name, share: 0 })
    try {
      const path = apiPath(['api', 'scopes', scope, 'files'], { wait: false })
      await uploadFile(path, file, file.type || 'application/octet-stream', (share) =>
        setUpload({ name: file.name, share }),
      )
      files.reload()
    } catch (cause) {
      setError((cause as Error).message)
    } finally {
      setUpload(undefined)
    }
  }
  return (
    <>
      <UploadArea onFile={(file) => void send(file)} />
      {upload !== undefined && <UploadProgress {...upload} />}
      {error !== '' && <ErrorState message={error} />}
      <ResourceView resource={files}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="This tenant has no files." />
          ) : (
            <FileTable scope={scope} items={items} onChange={files.reload} onError={setError} />
          )
        }
      </ResourceView>
    </>
  )
}

function UploadArea({ onFile }: { onFile: (file: File) => void }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <section
      class="upload row section-actions"
      aria-label="Upload"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        for (const file of event.dataTransfer?.files ?? []) onFile(file)
      }}
    >
      <input
        ref={input}
        type="file"
        class="visually-hidden"
        aria-label="File"
        tabIndex={-1}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0]
          event.currentTarget.value = ''
          if (file !== undefined) onFile(file)
        }}
      />
      <button type="button" class="button" onClick={() => input.current?.click()}>
        Upload a file…
      </button>
      <span class="hint">Text, Markdown, HTML, JSON, CSV, PDF or DOCX. You can also drop it here.</span>
    </section>
  )
}

const UploadProgress = ({ name, share }: { name: string; share: number }) => (
  <p class="upload-progress" role="status">
    {name}: {share < 1 ? `${formatPercent(share)} sent` : 'being indexed'}
    <progress max={1} value={share} aria-label={`Upload of ${name}`} />
  </p>
)

type TableProps = {
  scope: string
  items: readonly FileInfo[]
  onChange: () => void
  onError: (message: string) => void
}

const FileTable = ({ scope, items, onChange, onError }: TableProps) => (
  <div class="table-frame">
    <table class="stacked">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">State</th>
          <th scope="col" class="number">
            Size
          </th>
          <th scope="col" class="number">
            Chunks
          </th>
          <th scope="col" class="number">
            Uploaded
          </th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((file) => (
          <tr key={file.id}>
            <td class="message-text file-name">{file.name}</td>
            <td>
              <FileState file={file} />
            </td>
            <td class="number">{formatBytes(file.bytes)}</td>
            <td class="number" data-label="Chunks">
              {formatNumber(file.chunks)}
            </td>
            <td class="number">{formatTime(file.at)}</td>
            <td class="shrink">
              <button
                type="button"
                class="button small"
                aria-label={`Delete ${file.name}`}
                onClick={() =>
                  request(apiPath(['api', 'scopes', scope, 'files', file.id]), { method: 'DELETE' }).then(
                    onChange,
                    (cause: Error) => onError(cause.message),
                  )
                }
              >
                Delete
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

function FileState({ file: { status, done, chunks, why } }: { file: FileInfo }) {
  if (status === 'ready') return <Badge tone="good">ready</Badge>
  if (status === 'failed')
    return (
      <div class="file-fault">
        <Badge tone="danger">failed</Badge> <span class="danger">{why}</span>
      </div>
    )
  return (
    <span class="row">
      <Badge tone="warning">indexing</Badge>
      <progress max={Math.max(1, chunks)} value={done} aria-label="Indexed chunks" />
    </span>
  )
}
