// The icons of the page: strokes of one width on a grid of 20 units.

const paths = {
  search: 'M9 3.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM13.2 13.2 17 17',
  graph: 'M5.2 5.7 9 13.6M6.6 4.8l6.6 1M13.8 7.6l-2.6 6M5 2.9a1.9 1.9 0 1 1 0 3.8 1.9 1.9 0 0 1 0-3.8ZM15 4.1a1.9 1.9 0 1 1 0 3.8 1.9 1.9 0 0 1 0-3.8ZM10 13.3a1.9 1.9 0 1 1 0 3.8 1.9 1.9 0 0 1 0-3.8Z',
  memory: 'M3 16.5h14M3 16.5V4M5 7c4 0 4 6.5 11.5 6.5',
  activity: 'M2.5 10.5h3l2.2-6 4 11 2.3-5h3.5',
  review: 'M3.5 5h9M3.5 9.5h5M3.5 14h4M10 13.5l2.5 2.5 4.5-6',
  health: 'M10 16.8S3 12.7 3 7.9A3.7 3.7 0 0 1 10 6a3.7 3.7 0 0 1 7 1.9c0 4.8-7 8.9-7 8.9ZM6 10h2l1.2-2.2 1.8 4L12.3 10H14',
  status: 'M4 4.5h12v4H4zM4 11.5h12v4H4zM6.5 6.5h.01M6.5 13.5h.01',
  note: 'M5 3h7l3.5 3.5V17H5zM12 3v3.5h3.5M7.5 10h5.5M7.5 13h4',
  folder: 'M3 5.5h5l1.5 2H17v8H3z',
  pin: 'M7 3h6l-.8 5 2.3 2.5H5.5L7.8 8zM10 10.5V17',
  archive: 'M3.5 4h13v3.5h-13zM4.5 7.5V16h11V7.5M8 10.5h4',
  forget: 'M3 3l14 14M8.3 5a8 8 0 0 1 1.7-.2c4.5 0 7.5 5.2 7.5 5.2a13 13 0 0 1-2 2.6M5.3 6.6A13 13 0 0 0 2.5 10s3 5.2 7.5 5.2a7.5 7.5 0 0 0 3.3-.8',
  trash: 'M4 6h12M8 6V3.5h4V6M5.5 6l.7 11h7.6l.7-11M8.5 9v5M11.5 9v5',
  undo: 'M7 4 3.5 7.5 7 11M3.5 7.5h8a4.5 4.5 0 0 1 0 9H7',
  redo: 'M13 4l3.5 3.5L13 11M16.5 7.5h-8a4.5 4.5 0 0 0 0 9H13',
  restore: 'M4 10a6 6 0 1 0 2-4.5M6 2.5v3.5h3.5',
  up: 'M6.5 9 9.5 3.2c1.3 0 1.9.9 1.7 2.1L10.8 8h4.7l-1.2 7.5H6.5zM6.5 9H3.5v6.5h3',
  down: 'M6.5 11l3 5.8c1.3 0 1.9-.9 1.7-2.1L10.8 12h4.7L14.3 4.5H6.5zM6.5 11H3.5V4.5h3',
  close: 'M5 5l10 10M15 5 5 15',
  menu: 'M3.5 6h13M3.5 10h13M3.5 14h13',
  chevron: 'M7.5 5l5 5-5 5',
  external: 'M8 4.5H4.5v11h11V12M11.5 3.5h5v5M16 4 9.5 10.5',
  plus: 'M10 4v12M4 10h12',
  minus: 'M4 10h12',
  fit: 'M3.5 7.5v-4h4M12.5 3.5h4v4M16.5 12.5v4h-4M7.5 16.5h-4v-4',
  help: 'M10 2.8a7.2 7.2 0 1 1 0 14.4 7.2 7.2 0 0 1 0-14.4ZM7.8 8a2.2 2.2 0 1 1 3 2.1c-.6.3-.8.7-.8 1.4M10 14.2h.01',
  warning: 'M10 3.2 17.5 16.5h-15zM10 8v4M10 14.2h.01',
  check: 'M4 10.5l4 4 8-9',
  sun: 'M10 6.8a3.2 3.2 0 1 1 0 6.4 3.2 3.2 0 0 1 0-6.4ZM10 2v2M10 16v2M2 10h2M16 10h2M4.3 4.3l1.4 1.4M14.3 14.3l1.4 1.4M4.3 15.7l1.4-1.4M14.3 5.7l1.4-1.4',
  edit: 'M4 16l.8-3.4L13 4.4l2.6 2.6-8.2 8.2zM11.4 6l2.6 2.6',
  day: 'M4 4.5h12v12H4zM4 8.5h12M7.5 2.8v3M12.5 2.8v3',
  move: 'M3 5.5h5l1.5 2H17v8H3zM8 11.5h5M11 9.5l2 2-2 2',
  list: 'M7 5.5h9.5M7 10h9.5M7 14.5h9.5M3.5 5.5h.01M3.5 10h.01M3.5 14.5h.01',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
