//! Safe wrappers of the Windows calls that the standard library lacks. This is one of five files with unsafe code.
#![allow(unsafe_code, reason = "calls of the operating system")]

use std::ffi::c_void;
use std::fs::File;
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle};
use std::{io, mem, ptr};

use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_DISPOSITION_DELETE, FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE, FILE_DISPOSITION_POSIX_SEMANTICS,
    FILE_RENAME_IGNORE_READONLY_ATTRIBUTE, FILE_RENAME_INFORMATION, FILE_RENAME_POSIX_SEMANTICS,
    FILE_RENAME_REPLACE_IF_EXISTS, FileDispositionInformation, FileDispositionInformationEx,
    FileRenameInformation, FileRenameInformationEx, NtCreateFile, NtSetInformationFile,
};
use windows_sys::Win32::Foundation::{
    ERROR_DIRECTORY_NOT_SUPPORTED, ERROR_FILE_NOT_FOUND, ERROR_IO_PENDING, ERROR_LOCK_VIOLATION,
    ERROR_NO_MORE_FILES, NTSTATUS, RtlNtStatusToDosError, STATUS_DELETE_PENDING, STATUS_FILE_IS_A_DIRECTORY,
    STATUS_INVALID_INFO_CLASS, STATUS_INVALID_PARAMETER, STATUS_NOT_IMPLEMENTED, STATUS_NOT_SUPPORTED,
    UNICODE_STRING,
};
use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, GetKernelObjectSecurity, SetKernelObjectSecurity,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_TAG_INFO, FILE_BASIC_INFO,
    FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_STANDARD_INFO, FileAttributeTagInfo,
    FileBasicInfo, FileIdBothDirectoryInfo, FileIdBothDirectoryRestartInfo, FileStandardInfo, FileStreamInfo,
    FlushFileBuffers, GetFileInformationByHandle, GetFileInformationByHandleEx, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, SetFileInformationByHandle, UnlockFileEx,
};
use windows_sys::Win32::System::IO::{IO_STATUS_BLOCK, OVERLAPPED};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
    JOB_OBJECT_LIMIT_PROCESS_MEMORY, JOB_OBJECT_LIMIT_PROCESS_TIME, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectExtendedLimitInformation, SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, SetThreadPriority, THREAD_PRIORITY_LOWEST,
};

/// The length of the buffer for a part of a listing, in units of eight bytes.
const LISTING_BUFFER: usize = 8 << 10;

fn code_error(code: u32) -> io::Error {
    io::Error::from_raw_os_error(code.cast_signed())
}

/// Converts the status of a native call. Two of them have no error of their own in Win32.
fn check_status(status: NTSTATUS) -> io::Result<()> {
    match status {
        0.. => Ok(()),
        STATUS_FILE_IS_A_DIRECTORY => Err(code_error(ERROR_DIRECTORY_NOT_SUPPORTED)),
        // The name is free again as soon as another program closes its handle.
        STATUS_DELETE_PENDING => Err(code_error(ERROR_FILE_NOT_FOUND)),
        // SAFETY: the call takes a number and gives a number.
        status => Err(code_error(unsafe { RtlNtStatusToDosError(status) })),
    }
}

fn check(succeeded: i32) -> io::Result<()> {
    if succeeded == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Says whether the system or file system does not know a call with POSIX semantics: Windows before 10 version 1709,
/// FAT, and some network drives.
fn lacks_posix_semantics(status: NTSTATUS) -> bool {
    matches!(
        status,
        STATUS_INVALID_PARAMETER | STATUS_INVALID_INFO_CLASS | STATUS_NOT_SUPPORTED | STATUS_NOT_IMPLEMENTED
    )
}

/// Opens or creates an entry of an open folder, or a stream of an open file, by its name. Other programs may read,
/// write, rename and delete it meanwhile. The constants are those of `NtCreateFile`.
pub(super) fn open_at(
    parent: BorrowedHandle<'_>,
    name: &[u16],
    access: u32,
    disposition: u32,
    options: u32,
) -> io::Result<OwnedHandle> {
    let Ok(length) = u16::try_from(mem::size_of_val(name)) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let name = UNICODE_STRING { Length: length, MaximumLength: length, Buffer: name.as_ptr().cast_mut() };
    let attributes = OBJECT_ATTRIBUTES {
        Length: mem::size_of::<OBJECT_ATTRIBUTES>() as u32,
        RootDirectory: parent.as_raw_handle(),
        ObjectName: &raw const name,
        // Names are compared as the file system does it: on most volumes without regard to case.
        Attributes: 0x40,
        SecurityDescriptor: ptr::null(),
        SecurityQualityOfService: ptr::null(),
    };
    let mut handle = ptr::null_mut();
    let mut block = IO_STATUS_BLOCK::default();
    // SAFETY: all pointers lead to values that outlive the call; the name is read only, and its length is given.
    let status = unsafe {
        NtCreateFile(
            &raw mut handle,
            access,
            &raw const attributes,
            &raw mut block,
            ptr::null(),
            FILE_ATTRIBUTE_NORMAL,
            FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
            disposition,
            options,
            ptr::null(),
            0,
        )
    };
    check_status(status)?;
    // SAFETY: the call succeeded, so the handle is open, and nobody else has it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Renames an open entry into an open folder. An existing target is replaced, or an error.
pub(super) fn rename(
    entry: BorrowedHandle<'_>,
    folder: BorrowedHandle<'_>,
    name: &[u16],
    replace: bool,
) -> io::Result<()> {
    let start = mem::offset_of!(FILE_RENAME_INFORMATION, FileName);
    let length = mem::size_of::<FILE_RENAME_INFORMATION>().max(start + mem::size_of_val(name));
    // The structure has pointers in it, so it begins at a multiple of eight.
    let mut buffer = vec![0_u64; length.div_ceil(8)];
    let set = |buffer: &mut [u64], flags: u32, class| {
        let information = buffer.as_mut_ptr().cast::<FILE_RENAME_INFORMATION>();
        let mut block = IO_STATUS_BLOCK::default();
        // SAFETY: the buffer has room for the structure and for the name behind it, and is aligned for both.
        unsafe {
            (*information).Anonymous.Flags = flags;
            (*information).RootDirectory = folder.as_raw_handle();
            (*information).FileNameLength = mem::size_of_val(name) as u32;
            let target = (&raw mut (*information).FileName).cast::<u16>();
            ptr::copy_nonoverlapping(name.as_ptr(), target, name.len());
            NtSetInformationFile(
                entry.as_raw_handle(),
                &raw mut block,
                buffer.as_ptr().cast(),
                length as u32,
                class,
            )
        }
    };
    let flags = FILE_RENAME_POSIX_SEMANTICS | FILE_RENAME_IGNORE_READONLY_ATTRIBUTE;
    let flags = if replace { flags | FILE_RENAME_REPLACE_IF_EXISTS } else { flags };
    match set(&mut buffer, flags, FileRenameInformationEx) {
        status if lacks_posix_semantics(status) => {
            check_status(set(&mut buffer, u32::from(replace), FileRenameInformation))
        }
        status => check_status(status),
    }
}

/// Deletes an open entry.
pub(super) fn delete(entry: BorrowedHandle<'_>) -> io::Result<()> {
    let set = |flags: u32, length: u32, class| {
        let mut block = IO_STATUS_BLOCK::default();
        // SAFETY: the flags outlive the call, and both classes read at most their four bytes.
        unsafe {
            let flags = (&raw const flags).cast::<c_void>();
            NtSetInformationFile(entry.as_raw_handle(), &raw mut block, flags, length, class)
        }
    };
    let flags = FILE_DISPOSITION_DELETE
        | FILE_DISPOSITION_POSIX_SEMANTICS
        | FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE;
    match set(flags, 4, FileDispositionInformationEx) {
        status if lacks_posix_semantics(status) => check_status(set(1, 1, FileDispositionInformation)),
        status => check_status(status),
    }
}

/// A value that `GetFileInformationByHandleEx` fills: plain numbers, for which all zeros is valid.
trait Information: Default + Copy {
    const CLASS: i32;
}

impl Information for FILE_BASIC_INFO {
    const CLASS: i32 = FileBasicInfo;
}

impl Information for FILE_STANDARD_INFO {
    const CLASS: i32 = FileStandardInfo;
}

impl Information for FILE_ATTRIBUTE_TAG_INFO {
    const CLASS: i32 = FileAttributeTagInfo;
}

fn information<T: Information>(handle: BorrowedHandle<'_>) -> io::Result<T> {
    let mut found = T::default();
    // SAFETY: the value has the size and type that its class demands.
    check(unsafe {
        let found = (&raw mut found).cast();
        GetFileInformationByHandleEx(handle.as_raw_handle(), T::CLASS, found, mem::size_of::<T>() as u32)
    })?;
    Ok(found)
}

/// Reads times and attributes of an open file.
pub(super) fn basic_info(handle: BorrowedHandle<'_>) -> io::Result<FILE_BASIC_INFO> {
    information(handle)
}

/// Reads the number of bytes that an open file occupies on the disk.
pub(super) fn allocated(handle: BorrowedHandle<'_>) -> io::Result<i64> {
    Ok(information::<FILE_STANDARD_INFO>(handle)?.AllocationSize)
}

/// Reads the reparse tag of an open entry; it has a meaning only for a reparse point.
pub(super) fn reparse_tag(handle: BorrowedHandle<'_>) -> io::Result<u32> {
    Ok(information::<FILE_ATTRIBUTE_TAG_INFO>(handle)?.ReparseTag)
}

/// Sets times and attributes of an open file. A time of 0 stays as it is.
pub(super) fn set_basic_info(handle: BorrowedHandle<'_>, info: &FILE_BASIC_INFO) -> io::Result<()> {
    // SAFETY: the value has the size and type that the class demands.
    check(unsafe {
        let length = mem::size_of::<FILE_BASIC_INFO>() as u32;
        SetFileInformationByHandle(handle.as_raw_handle(), FileBasicInfo, ptr::from_ref(info).cast(), length)
    })
}

/// Reads volume, file index, size and attributes of an open entry.
pub(super) fn identity(handle: BorrowedHandle<'_>) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the value has the type that the call fills.
    check(unsafe { GetFileInformationByHandle(handle.as_raw_handle(), &raw mut found) })?;
    Ok(found)
}

fn bytes_of(buffer: &[u64]) -> Vec<u8> {
    buffer.iter().flat_map(|part| part.to_ne_bytes()).collect()
}

/// Reads a part of the listing of an open folder, the first one if `restart`: records of `FILE_ID_BOTH_DIR_INFO`. Empty
/// at the end.
pub(super) fn list(folder: BorrowedHandle<'_>, restart: bool) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0_u64; LISTING_BUFFER];
    let class = if restart { FileIdBothDirectoryRestartInfo } else { FileIdBothDirectoryInfo };
    let length = mem::size_of_val(buffer.as_slice()) as u32;
    // SAFETY: the buffer is aligned to eight bytes as the records demand, and its length is given.
    let read = check(unsafe {
        GetFileInformationByHandleEx(folder.as_raw_handle(), class, buffer.as_mut_ptr().cast(), length)
    });
    match read {
        Ok(()) => Ok(bytes_of(&buffer)),
        Err(error) if error.raw_os_error() == Some(ERROR_NO_MORE_FILES.cast_signed()) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Reads the list of the streams of an open file: records of `FILE_STREAM_INFO`.
pub(super) fn streams(file: BorrowedHandle<'_>) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0_u64; LISTING_BUFFER];
    let length = mem::size_of_val(buffer.as_slice()) as u32;
    // SAFETY: the buffer is aligned to eight bytes as the records demand, and its length is given.
    check(unsafe {
        GetFileInformationByHandleEx(file.as_raw_handle(), FileStreamInfo, buffer.as_mut_ptr().cast(), length)
    })?;
    Ok(bytes_of(&buffer))
}

/// Reads the access list of an open file, as a security descriptor.
pub(super) fn access_list(file: BorrowedHandle<'_>) -> io::Result<Vec<u64>> {
    let mut buffer = vec![0_u64; 512];
    loop {
        let (length, mut needed) = (mem::size_of_val(buffer.as_slice()) as u32, 0);
        // SAFETY: the buffer is aligned as a security descriptor demands, and its length is given.
        let read = check(unsafe {
            let (handle, descriptor) = (file.as_raw_handle(), buffer.as_mut_ptr().cast());
            GetKernelObjectSecurity(handle, DACL_SECURITY_INFORMATION, descriptor, length, &raw mut needed)
        });
        match read {
            Err(_) if needed > length => buffer.resize(needed.div_ceil(8) as usize, 0),
            read => return read.map(|()| buffer),
        }
    }
}

/// Gives an open file an access list that [`access_list`] read.
pub(super) fn set_access_list(file: BorrowedHandle<'_>, descriptor: &[u64]) -> io::Result<()> {
    // SAFETY: the system wrote the descriptor into this buffer, and nobody changed it.
    check(unsafe {
        let descriptor = descriptor.as_ptr().cast_mut().cast();
        SetKernelObjectSecurity(file.as_raw_handle(), DACL_SECURITY_INFORMATION, descriptor)
    })
}

/// Flushes an open file to the disk. The handle must have the right to write.
pub(super) fn flush(handle: BorrowedHandle<'_>) -> io::Result<()> {
    // SAFETY: the handle is open.
    check(unsafe { FlushFileBuffers(handle.as_raw_handle()) })
}

/// The byte that a lock covers. Locks are mandatory: within the file one would keep other processes from reading it.
fn locked_byte() -> OVERLAPPED {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.Offset = u32::MAX - 1;
    place.Anonymous.Anonymous.OffsetHigh = i32::MAX.cast_unsigned();
    place
}

/// Takes the lock of a file; `false` if another handle has it.
pub(super) fn try_lock(file: &File, exclusive: bool) -> io::Result<bool> {
    let flags = LOCKFILE_FAIL_IMMEDIATELY | if exclusive { LOCKFILE_EXCLUSIVE_LOCK } else { 0 };
    let mut place = locked_byte();
    // SAFETY: the handle is open, and the place outlives the call, which does not wait.
    match check(unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut place) }) {
        Ok(()) => Ok(true),
        Err(error) => {
            let held = [ERROR_LOCK_VIOLATION, ERROR_IO_PENDING].map(u32::cast_signed);
            if error.raw_os_error().is_some_and(|code| held.contains(&code)) { Ok(false) } else { Err(error) }
        }
    }
}

/// Releases the lock of a file.
pub(super) fn unlock(file: &File) -> io::Result<()> {
    let mut place = locked_byte();
    // SAFETY: the handle is open, and the place outlives the call.
    check(unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut place) })
}

/// Gives the calling thread a low priority.
pub(super) fn lower_thread_priority() -> io::Result<()> {
    // SAFETY: the handle of the calling thread is always valid.
    check(unsafe { SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST) })
}

/// Limits the memory of this process in bytes and its time in units of 100 ns, and lets it start no other one. The limits last
/// as long as the process, because a job exists until its last process has ended.
pub(super) fn limit_resources(memory: usize, time: i64) -> io::Result<()> {
    // SAFETY: no attributes and no name are given, which the call allows.
    let job = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
    if job.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just made, and nothing else owns it.
    let job = unsafe { OwnedHandle::from_raw_handle(job) };
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags =
        JOB_OBJECT_LIMIT_ACTIVE_PROCESS | JOB_OBJECT_LIMIT_PROCESS_MEMORY | JOB_OBJECT_LIMIT_PROCESS_TIME;
    limits.BasicLimitInformation.ActiveProcessLimit = 1;
    limits.BasicLimitInformation.PerProcessUserTimeLimit = time;
    limits.ProcessMemoryLimit = memory;
    let length = mem::size_of_val(&limits) as u32;
    // SAFETY: the handle is open, and the limits have the length that is given.
    check(unsafe {
        SetInformationJobObject(
            job.as_raw_handle(),
            JobObjectExtendedLimitInformation,
            (&raw const limits).cast(),
            length,
        )
    })?;
    // SAFETY: both handles are valid.
    check(unsafe { AssignProcessToJobObject(job.as_raw_handle(), GetCurrentProcess()) })
}
