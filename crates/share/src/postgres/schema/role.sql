select (select coalesce(max(version), 0) from sidenote.migration),
       coalesce((select rolsuper or rolbypassrls from pg_roles where rolname = current_user), true),
       exists (
           select from pg_class c join pg_namespace n on n.oid = c.relnamespace
           where n.nspname = 'sidenote' and pg_has_role(current_user, c.relowner, 'member')
       )
