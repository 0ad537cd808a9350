import resource
def attempt():
    for which in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        soft, hard = resource.getrlimit(which)
        if hard == resource.RLIM_INFINITY: return which
        try: resource.setrlimit(which, (hard + 1, hard + 1))
        except (ValueError, OSError): continue
        return which
    raise OSError("limits stay")
