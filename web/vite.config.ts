import { defineConfig, type Plugin } from 'vite';

/** Keeps the woff2 of each font of KaTeX and drops the older formats, which no supported browser loads. */
const woff2Only: Plugin = {
  name: 'woff2-only',
  enforce: 'pre',
  transform(code, id) {
    if (!id.includes('katex') || !id.endsWith('.css')) return null;
    return code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\(["'][a-z]+["']\)/g, '');
  },
};

export default defineConfig({
  base: '/',
  plugins: [woff2Only],
  build: {
    outDir: 'dist/page',
    emptyOutDir: true,
    assetsDir: 'assets',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    sourcemap: false,
  },
  worker: { format: 'es' },
  server: {
    proxy: process.env.SIDENOTE_ADDR ? { '/api': process.env.SIDENOTE_ADDR } : {},
  },
});
